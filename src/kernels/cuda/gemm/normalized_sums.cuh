// SPDX-License-Identifier: Apache-2.0
// Rows whose sums a launch before has kept: added up, finished and normalised by a block each.
#pragma once

#include "gemm/gemm.cuh"
#include "normalization/affine.cuh"
#include "normalization/statistics.cuh"

namespace gemm {

// Rows of kColumns elements, [split][row][pitch]; kThreads threads have four neighbours each, again and again.
template <int kSplits, int kThreads, int kColumns, class Sink, class Statistic, class Affine>
LATHE_DEVICE void normalize_sums(const float* sums, long rows, long pitch, const Sink& sink, const Statistic& statistic,
                                 const Affine& affine) {
  using Out = decltype(sink.out);
  constexpr int W = 4, D = Out::kUnit, kVectors = kColumns / W, kChunks = (kVectors + kThreads - 1) / kThreads;
  static_assert(kColumns % W == 0, "whole vectors");
  const long row = block_x();
  long c[kChunks][Out::kRank];
  bool inside[kChunks];
  LATHE_UNROLL
  for (int i = 0; i < kChunks; ++i) {
    const int vector = thread_x() + i * kThreads;
    inside[i] = vector < kVectors;
    sink.find(row, inside[i] ? vector * W : 0, c[i]);
    if (row == 0) affine.prefetch(c[i]);  // what nothing has read since the run before
  }
  dependency_wait();
  float v[kChunks][W];
  LATHE_UNROLL
  for (int i = 0; i < kChunks; ++i) {
    if (!inside[i]) continue;
    add_splits<kSplits>(sums + row * pitch + (thread_x() + i * kThreads) * W, rows * pitch, v[i]);
    sink.fusion.template apply<D, W>(v[i], c[i], W);
  }
  typename Statistic::State mine;
  statistic.absorb(mine, v, inside);
  auto all = mine;
  reduce_block<kThreads>(statistic, all, reinterpret_cast<typename Statistic::State*>(dynamic_shared()));
  const auto factors = statistic.finish_absorbed(all, mine, static_cast<float>(kColumns));
  LATHE_UNROLL
  for (int i = 0; i < kChunks; ++i) {
    if (!inside[i]) continue;
    statistic.apply_absorbed(v[i], factors);
    affine.template apply<D, W>(v[i], c[i]);
    store<D, W>(sink.out, c[i], v[i], W);
  }
}

}  // namespace gemm
