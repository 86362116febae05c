// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/loop_nest.h"

#include <algorithm>
#include <cstdlib>

namespace lathe::cpu {
namespace {

// Whether loop `outer`, directly around loop `inner`, only continues it.
bool continues(const LoopNest& nest, int outer, int inner) {
  for (int k = 0; k < nest.operands; ++k)
    if (nest.strides[k][outer] != nest.strides[k][inner] * nest.dims[inner]) return false;
  return true;
}

}  // namespace

LoopNest make_loop_nest(std::span<const TensorArg> outputs, std::span<const TensorArg> inputs) {
  const TensorArg& shape = outputs[0];
  int order[kMaxRank];
  int loops = 0;
  for (int d = 0; d < shape.rank; ++d)
    if (shape.dims[d] != 1) order[loops++] = d;
  // Insertion sort: stable, and it allocates nothing.
  for (int i = 1; i < loops; ++i)
    for (int j = i; j > 0 && std::abs(shape.strides[order[j - 1]]) < std::abs(shape.strides[order[j]]); --j)
      std::swap(order[j - 1], order[j]);

  LoopNest nest;
  nest.operands = static_cast<int>(outputs.size() + inputs.size());
  for (int i = 0; i < loops; ++i) {
    const int d = order[i];
    nest.dims[nest.rank] = shape.dims[d];
    int k = 0;
    for (const TensorArg& tensor : outputs) nest.strides[k++][nest.rank] = tensor.strides[d];
    for (const TensorArg& tensor : inputs) nest.strides[k++][nest.rank] = broadcast_stride_at(tensor, d, shape.rank);
    if (nest.rank > 0 && continues(nest, nest.rank - 1, nest.rank)) {
      nest.dims[nest.rank - 1] *= nest.dims[nest.rank];
      for (k = 0; k < nest.operands; ++k) nest.strides[k][nest.rank - 1] = nest.strides[k][nest.rank];
    } else {
      ++nest.rank;
    }
  }
  if (nest.rank == 0) {
    nest.rank = 1;
    nest.dims[0] = 1;
    for (int k = 0; k < nest.operands; ++k) nest.strides[k][0] = 1;
  }
  return nest;
}

bool broadcasts_to(const TensorArg& input, const TensorArg& shape) {
  if (input.rank > shape.rank) return false;
  for (int d = 0; d < input.rank; ++d) {
    const int64_t target = shape.dims[d + shape.rank - input.rank];
    if (input.dims[d] != target && input.dims[d] != 1) return false;
  }
  return true;
}

}  // namespace lathe::cpu
