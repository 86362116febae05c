// SPDX-License-Identifier: Apache-2.0
// How blocks of a cluster that have weighed keys of their own merge what they have of the same rows.
#pragma once

#include "attention/partial.cuh"
#include "lib/tensor_copies.cuh"

// What the Splits blocks of a cluster leave to each other of their rows: where the softmax is, to all, and sums, four
// columns at a time and `Threads` of these in turns, to the block that merges them. The receiver's barrier counts their
// bytes, so that each reads its own memory, and none waits for others but for what they send.
template <int Splits, int Rows, int Columns, int Threads>
struct Exchange {
  using Part = Partial<Rows, Columns>;
  static constexpr int kVectors = Rows * Columns / 4;
  static_assert(Splits <= Columns / 4, "each of the threads that have a part of a row tells one block");
  float* parts;
  uint64* arrived;
  int split;

  LATHE_DEVICE_MEMBER Part of(int block) const { return {parts + block * Part::kSize}; }
  LATHE_DEVICE_MEMBER void expect() const {
    int bytes = Splits * Rows * 8;
    for (int first = split * Threads; first < kVectors; first += Splits * Threads)
      bytes += Splits * 16 * (kVectors - first < Threads ? kVectors - first : Threads);
    phase_barrier_expect(arrived, bytes);
  }
  LATHE_DEVICE_MEMBER void begin() const {
    if constexpr (Splits > 1) {
      if (thread_x() == 0) phase_barrier_init(arrived, 1), phase_barrier_fence(), expect();
      cluster_arrive();
    }
  }
  // For their barriers.
  LATHE_DEVICE_MEMBER void wait_for_all() const {
    if constexpr (Splits > 1) cluster_wait();
  }
  LATHE_DEVICE_MEMBER void leave(const Merged& merged, int i) const {
    const int row = i / (Columns / 4), vector = i % (Columns / 4);
    const Part own = of(split);
    const Vec<float, 2> softmax = {merged.row.largest, merged.row.sum};
    if constexpr (Splits > 1) {
      if (vector < Splits) store_async(own.data + 2 * row, softmax, arrived, vector);
      store_async(own.sums(row) + 4 * vector, merged.sums, arrived, i / Threads % Splits);
    } else {
      if (vector == 0) own.put(row, merged.row);
      *reinterpret_cast<Vec<float, 4>*>(own.sums(row) + 4 * vector) = merged.sums;
    }
  }
  LATHE_DEVICE_MEMBER void wait(int turn) const {
    if constexpr (Splits > 1)
      phase_barrier_wait(arrived, static_cast<uint32>(turn));
    else
      barrier();
  }
  // All have read what they were left, and may be left more.
  LATHE_DEVICE_MEMBER void begin_again() const {
    if constexpr (Splits > 1) {
      if (thread_x() == 0) expect();
      cluster_arrive();
      wait_for_all();
    }
  }
};
