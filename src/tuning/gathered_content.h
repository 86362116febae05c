// SPDX-License-Identifier: Apache-2.0
// Contents of operands, dense, as the plain evaluation reads them.
#pragma once

#include "device/kernel.h"
#include "tuning/problem.h"

namespace lathe {

// Of one dimension of a result these elements: {1, 3, {0, 5}} are the first and the sixth of what the operand's
// dimensions 1 and 2 make up together. All of them where there are no indices.
struct Taken {
  size_t begin = 0, end = 0;
  std::vector<int64_t> indices;
};

// The window's elements, row-major, in the memory's own type or in f32. Element `first` of the memory is the window's
// first.
Result<Tensor> gather(const Tensor& memory, int64_t first, const TensorArg& arg, DType dtype, const Taken& taken = {});

// Packed weights as the op sees them.
Result<Tensor> dequantized(const Operand& operand, const Taken& taken = {});

}  // namespace lathe
