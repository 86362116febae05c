// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "ops/rules.h"

namespace lathe {

Result<> infer_trilu(InferContext& context) {
  LATHE_TRY(require_rank(context, 0, 2, kMany));
  if (context.has(1)) {
    LATHE_TRY(require_integer(context, 1));
    if (!context.assume_equal(volume(context.shape(1)), 1))
      return fail(ErrorCode::shape_mismatch, "trilu: k must be one integer, but has shape {}",
                  to_string(context.shape(1)));
  }
  context.set(0, context.dtype(0), context.shape(0));
  return {};
}

Result<> eval_trilu(EvalContext& context) {
  const Tensor& input = context.input(0);
  Tensor& output = context.output(0);
  const int64_t rows = input.dims()[input.dims().size() - 2], columns = input.dims().back();
  const int64_t size = static_cast<int64_t>(size_of(input.dtype()));
  const bool upper = context.attrs<TriluAttrs>().upper;
  const int64_t k = context.has(1) ? std::clamp(context.input(1).at(0), -rows, columns) : 0;
  const char* from = static_cast<const char*>(input.data());
  char* to = static_cast<char*>(output.mutable_data());
  const int64_t all_rows = input.volume() == 0 ? 0 : input.volume() / columns;
  for (int64_t r = 0; r < all_rows; ++r, from += columns * size, to += columns * size) {
    // Columns [first, last) are kept.
    const int64_t diagonal = r % rows + k;
    const int64_t first = upper ? std::clamp<int64_t>(diagonal, 0, columns) : 0;
    const int64_t last = upper ? columns : std::clamp<int64_t>(diagonal + 1, 0, columns);
    std::memset(to, 0, static_cast<size_t>(columns * size));
    std::memcpy(to + first * size, from + first * size, static_cast<size_t>((last - first) * size));
  }
  return {};
}

}  // namespace lathe
