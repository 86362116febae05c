// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/indices.h"
#include "ops/rules.h"
#include "ops/symbolic.h"

namespace lathe {

Result<> infer_gather(InferContext& context) {
  const Shape &data = context.shape(0), &indices = context.shape(1);
  LATHE_TRY(require_integer(context, 1));
  LATHE_ASSIGN(const int64_t axis, normalize_axis(context.attrs<GatherAttrs>().axis, context.rank(0), "gather: axis"));
  Shape output(data.begin(), data.begin() + axis);
  output.insert(output.end(), indices.begin(), indices.end());
  output.insert(output.end(), data.begin() + axis + 1, data.end());
  context.set(0, context.dtype(0), std::move(output));
  move_elements(context);
  return {};
}

Result<> eval_gather(EvalContext& context) {
  const Tensor& data = context.input(0);
  Tensor& output = context.output(0);
  LATHE_ASSIGN(const int64_t axis, normalize_axis(context.attrs<GatherAttrs>().axis, data.rank()));
  const int64_t extent = data.dims()[static_cast<size_t>(axis)];
  LATHE_ASSIGN(const Ints indices, read_indices(context.input(1), extent, "gather"));
  if (output.volume() == 0) return {};
  const size_t row =
      static_cast<size_t>(row_major_strides(data.dims())[static_cast<size_t>(axis)]) * size_of(data.dtype());
  const size_t outer = output.bytes() / (indices.size() * row);
  const char* from = static_cast<const char*>(data.data());
  char* to = static_cast<char*>(output.mutable_data());
  for (size_t o = 0; o < outer; ++o, from += static_cast<size_t>(extent) * row)
    for (int64_t index : indices) {
      std::memcpy(to, from + static_cast<size_t>(index) * row, row);
      to += row;
    }
  return {};
}

}  // namespace lathe
