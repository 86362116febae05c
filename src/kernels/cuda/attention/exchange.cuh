// SPDX-License-Identifier: Apache-2.0
// How blocks of a cluster, each of which has attended to keys of its own (split-K), merge what they have of the same
// rows.
#pragma once

#include "attention/partial.cuh"
#include "lib/tensor_copies.cuh"

// What the Splits blocks of a cluster send each other of their rows: the softmax's running maximum and sum to all of
// them, and sums of values to the block that merges them, vectors of four columns, of which `Threads` in a row go to
// one block and the next ones to the next. The receiver's barrier counts their bytes, so that each block reads its own
// memory, waits for nothing but what it is sent, and may end then.
template <int Splits, int Rows, int Columns, int Threads>
struct Exchange {
  using Part = Partial<Rows, Columns>;
  static constexpr int kVectors = Rows * Columns / 4;
  static_assert(Splits <= Columns / 4, "the first Splits threads of a row send its maximum and sum, each to one block");
  float* parts;     // Splits of them, one from each block
  uint64* arrived;  // the barrier
  int split;        // this block's rank in the cluster

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
  // Until all blocks have their barriers.
  LATHE_DEVICE_MEMBER void wait_for_all() const {
    if constexpr (Splits > 1) cluster_wait();
  }
  // Vector i of this block's rows.
  LATHE_DEVICE_MEMBER void send(const Merged& merged, int i) const {
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
  // All have read what they were sent, and may be sent more.
  LATHE_DEVICE_MEMBER void begin_again() const {
    if constexpr (Splits > 1) {
      if (thread_x() == 0) expect();
      cluster_arrive();
      wait_for_all();
    }
  }
};
