// SPDX-License-Identifier: Apache-2.0
// Rows of a product's results that are normalised by a block each: of sums that a launch before has kept, or as it has
// written them.
#pragma once

#include "gemm/gemm.cuh"
#include "normalization/affine.cuh"
#include "normalization/statistics.cuh"

namespace gemm {

// Sums, [split][row][pitch], that are added up and finished by the product's program. Written: the tensor of what is
// normalised, or Absent.
template <int kSplits, class Fusion, class Written>
struct SummedRows {
  const float* sums;
  long rows, pitch;
  Fusion fusion;
  Written written;

  template <int D, int W, int N>
  LATHE_DEVICE_MEMBER void read(long row, const long (&c)[N], float (&v)[W]) const {
    add_splits<kSplits>(sums + row * pitch + c[D], rows * pitch, v);
    fusion.template apply<D, W>(v, c, W);
    if constexpr (!is_same<Written, Absent>) store<D, W>(written, c, v, W);
  }
};

// Results that the product has written.
template <class Written>
struct WrittenRows {
  Written written;

  template <int D, int W, int N>
  LATHE_DEVICE_MEMBER void read(long, const long (&c)[N], float (&v)[W]) const {
    load<D, W>(written, c, v, W);
  }
};

// Rows of kColumns elements; kThreads threads have four neighbours each, again and again.
template <int kThreads, int kColumns, class Rows, class Out, class Statistic, class Affine>
LATHE_DEVICE void normalize_results(const Rows& rows, const Out& out, const Statistic& statistic,
                                    const Affine& affine) {
  constexpr int W = 4, D = Out::kRank - 1, kVectors = kColumns / W, kChunks = (kVectors + kThreads - 1) / kThreads;
  static_assert(kColumns % W == 0 && Out::kUnit == D, "whole vectors");
  const long row = block_x();
  long c[kChunks][Out::kRank];
  bool inside[kChunks];
  LATHE_UNROLL
  for (int i = 0; i < kChunks; ++i) {
    const int vector = thread_x() + i * kThreads;
    inside[i] = vector < kVectors;
    row_coordinates<D, 1>(out, row, c[i]);
    c[i][D] = inside[i] ? vector * W : 0;
    if (row == 0) affine.prefetch(c[i]);  // what nothing has read since the run before
  }
  dependency_wait();
  float v[kChunks][W];
  LATHE_UNROLL
  for (int i = 0; i < kChunks; ++i)
    if (inside[i]) rows.template read<D>(row, c[i], v[i]);
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
    store<D, W>(out, c[i], v[i], W);
  }
}

}  // namespace gemm
