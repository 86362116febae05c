// SPDX-License-Identifier: Apache-2.0
// What a program leaves: one result, or several.
#pragma once

#include "lib/tensor.cuh"

// Results from the K-th on. The last one may have to be rounded yet.
template <class Fusion, int D, int K, int kResults, int W, int N, class Out, class... More>
LATHE_DEVICE void store_results_from(const float (&results)[kResults][W], const long (&c)[N], int count, const Out& out,
                                     const More&... more) {
  if constexpr (sizeof...(More) > 0) {
    store<D>(out, c, results[K], count);
    store_results_from<Fusion, D, K + 1>(results, c, count, more...);
  } else {
    store_result<Fusion, D>(out, c, results[K], count);
  }
}

// Applies the program behind a kernel to W elements along dimension D and writes the first `count` of each result.
template <int D, int W, class Fusion, int N, class... Out>
LATHE_DEVICE void store_results(const Fusion& fusion, float (&v)[W], const long (&c)[N], int count,
                                const Out&... outputs) {
  static_assert(sizeof...(Out) == Fusion::kOutputs, "each result has a tensor");
  if constexpr (sizeof...(Out) == 1) {
    fusion.template apply<D, W>(v, c, count);
    (store_result<Fusion, D>(outputs, c, v, count), ...);
  } else {
    float results[Fusion::kOutputs][W];
    fusion.template evaluate<D, W>(v, results, c, count);
    store_results_from<Fusion, D, 0>(results, c, count, outputs...);
  }
}
