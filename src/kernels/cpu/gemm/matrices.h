// SPDX-License-Identifier: Apache-2.0
// Tensors as stacks of matrices, which lie in their last two dimensions.
#pragma once

#include "device/cpu/kernel.h"
#include "kernels/cpu/loop_nest.h"

namespace lathe::cpu::gemm {

// How many there are.
inline int64_t leading(const TensorArg& tensor) {
  int64_t product = 1;
  for (int d = 0; d < tensor.rank - 2; ++d) product *= tensor.dims[d];
  return product;
}

// Of the matrix'th matrix of the output, in a tensor that broadcasts to the output.
inline int64_t matrix_offset(const TensorArg& tensor, const TensorArg& out, int64_t matrix) {
  int64_t offset = 0;
  for (int d = out.rank - 3; d >= 0; --d) {
    offset += matrix % out.dims[d] * broadcast_stride_at(tensor, d, out.rank);
    matrix /= out.dims[d];
  }
  return offset;
}

// That matrix.
inline TensorArg matrix_of(const TensorArg& tensor, const TensorArg& out, int64_t matrix) {
  TensorArg own = tensor;
  own.data = tensor.as<std::byte>() + matrix_offset(tensor, out, matrix) * static_cast<int64_t>(size_of(tensor.dtype));
  own.rank = 2;
  for (int d = 0; d < 2; ++d) {
    own.dims[d] = tensor.dims[tensor.rank - 2 + d];
    own.strides[d] = tensor.strides[tensor.rank - 2 + d];
  }
  return own;
}

// Whether its matrices have that many rows and columns, and there are as many as the output's, or they broadcast.
inline bool is_matrix_of(const TensorArg& tensor, const TensorArg& out, int64_t rows, int64_t columns) {
  if (tensor.rank < 2 || tensor.rank > out.rank || tensor.dims[tensor.rank - 2] != rows ||
      tensor.dims[tensor.rank - 1] != columns)
    return false;
  for (int d = 0; d < tensor.rank - 2; ++d)
    if (tensor.dims[d] != 1 && tensor.dims[d] != out.dims[d + out.rank - tensor.rank]) return false;
  return true;
}

}  // namespace lathe::cpu::gemm
