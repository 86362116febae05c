// SPDX-License-Identifier: Apache-2.0
// Contents of operands, dense, as the plain evaluation reads them.
#pragma once

#include "device/kernel.h"
#include "tuning/problem.h"

namespace lathe {

// Of a dimension of an op, which the dimensions from `begin` to `end` of the operand make up, these elements; all of
// them where there are no indices.
struct Taken {
  size_t begin = 0, end = 0;
  std::vector<int64_t> indices;
};

// The window's elements, row-major, in the memory's own type or in f32. Element `first` of the memory is the window's
// first. What is taken is one dimension of the result.
Result<Tensor> gather(const Tensor& memory, int64_t first, const TensorArg& arg, DType dtype, const Taken& taken = {});

// Packed weights as the op sees them.
Result<Tensor> dequantized(const Operand& operand, const Taken& taken = {});

}  // namespace lathe
