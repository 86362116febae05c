// SPDX-License-Identifier: Apache-2.0
// Tensors seen from one of their axes.
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

}  // namespace lathe::cpu
