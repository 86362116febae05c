// SPDX-License-Identifier: Apache-2.0
#include "ops/copy_box.h"
#include "ops/rules.h"
#include "ops/symbolic.h"

namespace lathe {

Result<> infer_unsqueeze(InferContext& context) {
  const std::optional<Ints> given = context.constant_elements(1);
  if (!given) {  // only running tells which dims are the new ones
    LATHE_ASSIGN(const int64_t count, list_length(context, 1, "unsqueeze: axes"));
    Shape output;
    const auto rank = static_cast<size_t>(context.rank(0) + count);
    for (size_t d = 0; d < rank; ++d) output.push_back(context.new_symbol("unsqueezed", d));
    context.set(0, context.dtype(0), std::move(output));
    return {};
  }
  const int64_t rank = context.rank(0) + static_cast<int64_t>(given->size());
  LATHE_ASSIGN(const Ints axes, normalize_axes(*given, rank, "unsqueeze: axes"));
  Shape output = context.shape(0);
  for (int64_t axis : axes) output.insert(output.begin() + axis, Expr(1));  // sorted, so each lands at its final place
  context.set(0, context.dtype(0), std::move(output));
  if (context.partial_elements(0)) context.set_elements(0, *context.partial_elements(0));
  return {};
}

Result<> eval_unsqueeze(EvalContext& context) { return eval_view(context); }

}  // namespace lathe
