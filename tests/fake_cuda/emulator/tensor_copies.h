// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory that count arrivals and bytes, and what arrives at them, copies of the copy engine and
// stores to other blocks. A copy spoils its destination at once and arrives when a thread waits for it: whoever reads
// too early, and whoever still needed what was there, sees NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace emulator {

// As it lies in shared memory, which begins as poison.
struct PhaseBarrier {
  uint16_t arrivals, pending;
  int32_t bytes : 31;
  uint32_t parity : 1;

  bool is_valid() const { return arrivals != 0xffff && arrivals != 0; }
  void complete() {
    if (pending != 0 || bytes != 0) return;
    pending = arrivals;
    parity ^= 1u;
  }
};
static_assert(sizeof(PhaseBarrier) == 8);

// What is on its way to a block of the cluster: a block of a tensor, or what a thread has stored.
struct TensorCopy {
  size_t block;
  unsigned char* to;
  PhaseBarrier* barrier;
  const void* map;  // nullptr: what is `stored`
  size_t bytes;
  int at[6] = {};  // of windows, four coordinates and the element of the window, a column and a row
  unsigned char stored[16] = {};
};

// Its bytes, all of the block that the map describes; 0 when the map is none of so many coordinates.
size_t bytes_of(const void* map, int coordinates);
// Writes what the tensor holds there.
void arrive(const TensorCopy& copy);

}  // namespace emulator
