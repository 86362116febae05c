// SPDX-License-Identifier: Apache-2.0
#include "ops/row_affine.h"

namespace lathe {

Result<> check_row_operand(InferContext& context, size_t index) {
  LATHE_TRY(require_floating(context, index));
  const Shape &x = context.shape(0), &operand = context.shape(index);
  if (assume_expands(context, operand, x)) return {};
  return fail(ErrorCode::shape_mismatch, "{} (input {}) has shape {}, which does not broadcast to the input's shape {}",
              index == 1 ? "scale" : "bias", index, to_string(operand), to_string(x));
}

void apply_affine(EvalContext& context, std::vector<double>& values) {
  const Dims& dims = context.input(0).dims();
  const bool biased = context.has(2);
  const std::vector<double> scale = to_doubles(context.input(1));
  const std::vector<double> bias = biased ? to_doubles(context.input(2)) : std::vector<double>{0};
  const Dims operands[] = {context.input(1).dims(), biased ? context.input(2).dims() : Dims()};
  Runs runs(dims, operands);
  double* value = values.data();
  for (int64_t run = 0; run < runs.total(); ++run, runs.next())
    for (int64_t i = 0; i < runs.count(); ++i, ++value)
      *value = *value * scale[runs.offset(0) + i * runs.step(0)] + bias[runs.offset(1) + i * runs.step(1)];
}

int64_t row_size(const Dims& dims, int64_t axis) {
  int64_t size = 1;
  for (size_t i = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis); i < dims.size(); ++i)
    size *= dims[i];
  return size;
}

}  // namespace lathe
