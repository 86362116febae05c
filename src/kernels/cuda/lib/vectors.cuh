// SPDX-License-Identifier: Apache-2.0
// Walking a tensor in vectors of W elements along its last dimension.
#pragma once

#include "lib/tensor.cuh"

// How many such vectors there are; the last one of a row may be short.
template <int W, class Index, class Tensor>
LATHE_DEVICE Index count_vectors(const Tensor& tensor) {
  Index count = static_cast<Index>((tensor.dim(Tensor::kRank - 1) + W - 1) / W);
  LATHE_UNROLL
  for (int i = 0; i < Tensor::kRank - 1; ++i) count *= static_cast<Index>(tensor.dim(i));
  return count;
}

// Coordinates of the first element of vector `vector`, and how many elements it has.
template <int W, class Index, class Tensor>
LATHE_DEVICE int vector_coordinates(const Tensor& tensor, Index vector, long (&c)[Tensor::kRank]) {
  constexpr int kLast = Tensor::kRank - 1;
  if constexpr (kLast == 0) {
    c[0] = static_cast<long>(vector) * W;
  } else {
    const Index per_row = static_cast<Index>((tensor.dim(kLast) + W - 1) / W);
    c[kLast] = static_cast<long>(vector % per_row) * W;
    vector /= per_row;
    LATHE_UNROLL
    for (int i = kLast - 1; i > 0; --i) {
      const Index dim = static_cast<Index>(tensor.dim(i));
      c[i] = static_cast<long>(vector % dim);
      vector /= dim;
    }
    c[0] = static_cast<long>(vector);
  }
  const long left = tensor.dim(kLast) - c[kLast];
  return left < W ? static_cast<int>(left) : W;
}
