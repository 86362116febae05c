// SPDX-License-Identifier: Apache-2.0
// The shared memory that the groups of a block read, and its barriers.
#pragma once

#include "lib/tensor_copies.cuh"
#include "lib/warpgroup.cuh"

namespace attention_pipeline {

// kSize: elements of a key, in whole steps of an instruction; kValueColumns: those of a value, as many as the
// instruction has. Rows lie in panels of 128 bytes, as wgmma reads them and the copy engine writes them. Values of
// 8-bit floats are turned (turned_values.cuh), and eight rows of ones stand behind them, which sum up the weights.
template <class T_, int kSize_, int kValueColumns_, int kGroups_, int kKeys_, int kStages_>
struct Shape {
  using T = T_;
  static constexpr int kSize = kSize_, kValueColumns = kValueColumns_, kGroups = kGroups_, kKeys = kKeys_;
  static constexpr int kStages = kStages_, kQueries = 64 * kGroups, kWarps = 4 * kGroups;
  static constexpr bool kFloat8 = is_float8<T>;
  static constexpr int kPanel = 128 / static_cast<int>(sizeof(T)), kStep = kPanel / 4;  // elements, and of K
  static constexpr int kPanels = (kSize + kPanel - 1) / kPanel, kValuePanels = (kValueColumns + kPanel - 1) / kPanel;
  static constexpr int kQueryBytes = kPanels * kQueries * 128;
  static constexpr int kKeyBytes = kPanels * kKeys * 128, kValueBytes = kValuePanels * kKeys * 128;
  static constexpr int kSumColumns = kFloat8 ? kValueColumns + 8 : kValueColumns;
  static constexpr int kTurnedBytes = kFloat8 ? kSumColumns * 128 : 0, kTurners = kFloat8 ? 3 : 0;  // warps
  static constexpr int kStageBytes = kKeyBytes + kValueBytes + kTurnedBytes;
  static_assert(kSize % kStep == 0 && kKeys % kStep == 0, "what the instruction takes");
  static_assert(!kFloat8 || (kKeys <= 128 && kPanels == 1 && kValuePanels == 1 && kValueColumns % 32 == 0),
                "what is turned");
};

// Queries, the ring of keys and values, and the barriers: whether each is filled, and whether it may be.
template <class Shape>
struct Memory {
  static constexpr int kBarriers = Shape::kQueryBytes + Shape::kStages * Shape::kStageBytes;
  char* shared;
  unsigned address = hold(shared_address(shared));

  LATHE_DEVICE_MEMBER explicit Memory(void* at) : shared(static_cast<char*>(at)) {}

  // Where they begin, in bytes.
  LATHE_DEVICE_MEMBER static int keys_at(int stage) { return Shape::kQueryBytes + stage * Shape::kStageBytes; }
  LATHE_DEVICE_MEMBER static int values_at(int stage) { return keys_at(stage) + Shape::kKeyBytes; }
  LATHE_DEVICE_MEMBER static int turned_at(int stage) { return values_at(stage) + Shape::kValueBytes; }
  // What products with weights read.
  LATHE_DEVICE_MEMBER static int factors_at(int stage) { return Shape::kFloat8 ? turned_at(stage) : values_at(stage); }

  LATHE_DEVICE_MEMBER char* queries() const { return shared; }
  LATHE_DEVICE_MEMBER char* keys(int stage) const { return shared + keys_at(stage); }
  LATHE_DEVICE_MEMBER char* values(int stage) const { return shared + values_at(stage); }
  LATHE_DEVICE_MEMBER char* turned(int stage) const { return shared + turned_at(stage); }

  LATHE_DEVICE_MEMBER PhaseBarrier barrier(int number) const { return PhaseBarrier(address + kBarriers + 8 * number); }
  LATHE_DEVICE_MEMBER PhaseBarrier queries_filled() const { return barrier(0); }
  LATHE_DEVICE_MEMBER PhaseBarrier queries_empty() const { return barrier(1); }
  LATHE_DEVICE_MEMBER PhaseBarrier keys_filled(int stage) const { return barrier(2 + stage); }
  LATHE_DEVICE_MEMBER PhaseBarrier keys_empty(int stage) const { return barrier(2 + Shape::kStages + stage); }
  LATHE_DEVICE_MEMBER PhaseBarrier values_filled(int stage) const { return barrier(2 + 2 * Shape::kStages + stage); }
  LATHE_DEVICE_MEMBER PhaseBarrier values_empty(int stage) const { return barrier(2 + 3 * Shape::kStages + stage); }
  LATHE_DEVICE_MEMBER PhaseBarrier turn(int group) const { return barrier(2 + 4 * Shape::kStages + group); }
  LATHE_DEVICE_MEMBER PhaseBarrier turned_filled(int stage) const {
    return barrier(2 + 4 * Shape::kStages + Shape::kGroups + stage);
  }
  LATHE_DEVICE_MEMBER PhaseBarrier turned_empty(int stage) const {
    return barrier(2 + 5 * Shape::kStages + Shape::kGroups + stage);
  }
  LATHE_DEVICE_MEMBER PhaseBarrier factors_filled(int stage) const {
    return Shape::kFloat8 ? turned_filled(stage) : values_filled(stage);
  }
  LATHE_DEVICE_MEMBER PhaseBarrier factors_empty(int stage) const {
    return Shape::kFloat8 ? turned_empty(stage) : values_empty(stage);
  }
};

template <class Shape>
LATHE_DEVICE void init_barriers(const Memory<Shape>& memory) {
  if (thread_x() == 0) {
    phase_barrier_init(memory.queries_filled(), 1);
    phase_barrier_init(memory.queries_empty(), Shape::kWarps);
    for (int stage = 0; stage < Shape::kStages; ++stage) {
      phase_barrier_init(memory.keys_filled(stage), 1);
      phase_barrier_init(memory.keys_empty(stage), Shape::kWarps);
      phase_barrier_init(memory.values_filled(stage), 1);
      phase_barrier_init(memory.values_empty(stage), Shape::kFloat8 ? Shape::kTurners : Shape::kWarps);
      if constexpr (Shape::kFloat8) {
        phase_barrier_init(memory.turned_filled(stage), Shape::kTurners);
        phase_barrier_init(memory.turned_empty(stage), Shape::kWarps);
      }
    }
    for (int group = 0; group < Shape::kGroups; ++group) phase_barrier_init(memory.turn(group), 4);
    phase_barrier_fence();
  }
  barrier();
}

// A warp is done with what the barrier is of.
LATHE_DEVICE void release(PhaseBarrier empty) {
  if (lane() == 0) phase_barrier_arrive(empty);
}

// A place in the ring; `parity` is that of the round.
template <class Shape>
struct Ring {
  int at = 0;
  uint32 parity = 0;
  LATHE_DEVICE_MEMBER void next() {
    if (++at < Shape::kStages) return;
    at = 0;
    parity ^= 1;
  }
};

// Groups begin their products in turns, unless there are so many that matrix units are busy anyway.
template <class Shape>
struct Turns {
  static constexpr bool kAre = Shape::kGroups > 1 && Shape::kGroups < 4;
  int group;
  uint32 parity;
  LATHE_DEVICE_MEMBER explicit Turns(int g) : group(g), parity(g == 0 ? 1 : 0) {}
  LATHE_DEVICE_MEMBER void wait(const Memory<Shape>& memory) {
    if constexpr (kAre) {
      phase_barrier_wait(memory.turn(group), parity);
      parity ^= 1;
    }
  }
  LATHE_DEVICE_MEMBER void pass(const Memory<Shape>& memory) const {
    if constexpr (kAre) release(memory.turn(group + 1 < Shape::kGroups ? group + 1 : 0));
  }
};

}  // namespace attention_pipeline
