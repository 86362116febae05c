// SPDX-License-Identifier: Apache-2.0
// A pure pointwise program over tensors of one shape, collapsed by the host. A thread does kUnroll vectors of W
// elements, neighbouring threads neighbouring vectors.
#pragma once

#include "lib/vectors.cuh"

template <int W, int kUnroll, class Index, class Fusion, class Space, class... Out>
LATHE_DEVICE void pointwise(const Fusion& fusion, const Space& space, const Out&... outputs) {
  constexpr int D = Space::kRank - 1;
  const Index total = count_vectors<W, Index>(space);
  const Index threads = static_cast<Index>(block_threads());
  const Index first = static_cast<Index>(block_x()) * threads * kUnroll + static_cast<Index>(thread_x());
  dependency_wait();
  long c[kUnroll][Space::kRank];
  int count[kUnroll];
  float v[kUnroll][Fusion::kOutputs][W];
  // All loads come before the first store: outputs may be the memory of inputs, so the compiler cannot reorder them.
  LATHE_UNROLL
  for (int u = 0; u < kUnroll; ++u) {
    const Index vector = first + static_cast<Index>(u) * threads;
    count[u] = vector < total ? vector_coordinates<W>(space, vector, c[u]) : 0;
    if (count[u] > 0) fusion.template evaluate<D>(v[u], c[u], count[u]);
  }
  LATHE_UNROLL
  for (int u = 0; u < kUnroll; ++u) {
    int k = 0;
    if (count[u] > 0) (store<D>(outputs, c[u], v[u][k++], count[u]), ...);
  }
}
