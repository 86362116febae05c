// SPDX-License-Identifier: Apache-2.0
// What kernels ask of their operands' shapes.
#pragma once

#include <algorithm>

#include "device/cpu/kernel.h"

namespace lathe::cpu {

// The tensor's first sub-tensor along an axis, of one dimension less.
inline TensorArg without_axis(TensorArg tensor, int axis) {
  std::copy(tensor.dims + axis + 1, tensor.dims + tensor.rank, tensor.dims + axis);
  std::copy(tensor.strides + axis + 1, tensor.strides + tensor.rank, tensor.strides + axis);
  --tensor.rank;
  return tensor;
}

inline bool same_dims(const TensorArg& a, const TensorArg& b) {
  return a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims);
}

// Whether the elements lie one behind the other in row-major order. Kernels that walk an operand by a pointer alone
// check it: the strides come from a file.
inline bool is_dense(const TensorArg& tensor) {
  int64_t stride = 1;
  for (int d = tensor.rank; d-- > 0; stride *= tensor.dims[d])
    if (tensor.dims[d] > 1 && tensor.strides[d] != stride) return false;
  return true;
}

}  // namespace lathe::cpu
