// SPDX-License-Identifier: Apache-2.0
// The loops of an elementwise walk over several strided tensors of one shape, as few and as long as possible.
#pragma once

#include <cstdint>
#include <span>

#include "device/cpu/kernel.h"

namespace lathe::cpu {

inline constexpr int kMaxNestOperands = 24;

struct LoopNest {
  int rank = 0;  // at least 1
  int operands = 0;
  int64_t dims[kMaxRank] = {};  // outermost first
  int64_t strides[kMaxNestOperands][kMaxRank] = {};

  // Offset of each operand at the flat index of the outer `outer_rank` loops.
  void offsets(int outer_rank, int64_t index, int64_t* result) const {
    for (int k = 0; k < operands; ++k) result[k] = 0;
    for (int d = outer_rank - 1; d >= 0; --d) {
      const int64_t i = index % dims[d];
      index /= dims[d];
      for (int k = 0; k < operands; ++k) result[k] += i * strides[k][d];
    }
  }
};

// The stride of `tensor` along dimension `dim` of a shape of `rank` dimensions that it is broadcast to, aligned at the
// last dimension.
inline int64_t broadcast_stride_at(const TensorArg& tensor, int dim, int rank) {
  const int own = dim - (rank - tensor.rank);
  return own < 0 || tensor.dims[own] == 1 ? 0 : tensor.strides[own];
}

// Loops over `shape`, for `outputs` (of that shape) and then `inputs` (broadcast to it). The loop with the smallest
// stride in the first output is innermost; loops that all operands walk as one are merged. No more than
// kMaxNestOperands operands.
LoopNest make_loop_nest(std::span<const TensorArg> outputs, std::span<const TensorArg> inputs);

// Whether `input` can be broadcast to `shape`: dimensions are equal or 1, aligned at the last.
bool broadcasts_to(const TensorArg& input, const TensorArg& shape);

}  // namespace lathe::cpu
