// SPDX-License-Identifier: Apache-2.0
// Values of 8-bit floats, whose rows must run along the keys for the matrix units: warps beside the one that asks for
// tiles turn them in shared memory, as FlashAttention-3 does (Shah and others, 2024). Sixteen neighbours along the keys
// are 0, 1, 8, 9, 2, 3, 10, 11, ... of sixteen keys, as a thread has weights of them; of 16 columns of values, the even
// ones come first. So both are what ldmatrix gives and threads write, without exchanges.
#pragma once

#include "attention_pipeline/group.cuh"

namespace attention_pipeline {

// Eight rows behind a tile's columns: their products with weights are the weights' sums.
template <class Shape>
LATHE_DEVICE void write_ones(const Memory<Shape>& memory) {
  constexpr unsigned kOnes = 0x38383838u;
  for (int stage = 0; stage < Shape::kStages; ++stage) {
    auto* rows = reinterpret_cast<unsigned*>(memory.turned(stage) + Shape::kValueColumns * 128);
    for (int i = thread_x(); i < 256; i += 128 * (Shape::kGroups + 1)) rows[i] = kOnes;
  }
  matrix_units_fence();
}

// All columns of sixteen keys, of which this is the `sixteen`th. What is read is on its way before any is written.
template <class Shape>
LATHE_DEVICE void turn_keys(const char* values, char* turned, int sixteen) {
  constexpr int kAcross = Shape::kValueColumns / 32;
  unsigned r[kAcross][4];  // of 32 columns: keys 0 to 7 and 8 to 15 of the first 16, and of the others
  const int key = sixteen * 16 + lane() / 8 % 2 * 8 + lane() % 8;
  LATHE_UNROLL
  for (int i = 0; i < kAcross; ++i) {
    const int chunk = 2 * i + lane() / 16;
    ldmatrix_x4_trans(r[i], values + key * 128 + ((chunk ^ lane() % 8) << 4));
  }
  char* to = turned + lane() / 4 * 128 + ((sixteen ^ lane() / 4) << 4) + lane() % 4 * 4;
  LATHE_UNROLL
  for (int i = 0; i < 2 * kAcross; ++i) {
    const unsigned low = r[i / 2][i % 2 * 2], high = r[i / 2][i % 2 * 2 + 1];
    *reinterpret_cast<unsigned*>(to + i * 16 * 128) = permute_bytes<0x6420>(low, high);
    *reinterpret_cast<unsigned*>(to + (i * 16 + 8) * 128) = permute_bytes<0x7531>(low, high);
  }
}

// One warp of those that turn values: `number` of Shape::kTurners.
template <class Shape, class Works>
LATHE_DEVICE void turn_values(const Memory<Shape>& memory, unsigned works, const Works& work_at, int number) {
  Ring<Shape> ring;
  dependency_wait();
  for (unsigned work = static_cast<unsigned>(block_x()); work < works; work += static_cast<unsigned>(grid_x())) {
    LATHE_NO_UNROLL
    for (int tile = work_at(work).tiles(); tile > 0; --tile, ring.next()) {
      phase_barrier_wait(memory.values_filled(ring.at), ring.parity);
      phase_barrier_wait(memory.turned_empty(ring.at), ring.parity ^ 1);
      const char* values = memory.values(ring.at);
      LATHE_UNROLL
      for (int i = 0; i < Shape::kKeys / 16; i += Shape::kTurners)
        if (i + number < Shape::kKeys / 16) turn_keys<Shape>(values, memory.turned(ring.at), i + number);
      matrix_units_fence();
      warp_barrier();
      release(memory.values_empty(ring.at));
      release(memory.turned_filled(ring.at));
    }
  }
}

// Writes a group's rows, from `row` on, to the sink.
template <class Group, class Sink>
LATHE_DEVICE void store_turned(const Group& group, const Sink& sink, long row, long rows, long columns) {
  row += warp() % 4 * 16 + lane() / 4;
  LATHE_UNROLL
  for (int half = 0; half < 2; ++half) {
    if (row + 8 * half >= rows) continue;
    LATHE_UNROLL
    for (int n = 0; n < Group::kValueColumns / 8; n += 2) {
      const long column = n * 8 + lane() % 4 * 4;
      if (column >= columns) continue;
      float v[4];
      LATHE_UNROLL
      for (int i = 0; i < 4; ++i) v[i] = group.acc[0][n + i % 2][2 * half + i / 2];
      sink.put(v, row + 8 * half, column, 4);
    }
  }
}

}  // namespace attention_pipeline
