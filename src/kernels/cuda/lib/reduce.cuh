// SPDX-License-Identifier: Apache-2.0
// Combining what the threads of a warp or block hold. A monoid has
//   State           trivially copyable, a multiple of 4 bytes
//   State start()   the neutral element
//   void merge(State& into, const State& from)
#pragma once

#include "lib/intrinsics.cuh"

template <class State>
LATHE_DEVICE State exchange(const State& state, int lane_mask) {
  struct Words {
    unsigned at[sizeof(State) / 4];
  };
  Words words = bit_cast<Words>(state);
  LATHE_UNROLL
  for (unsigned& word : words.at) word = shuffle_xor(word, lane_mask);
  return bit_cast<State>(words);
}

// Over each group of Lanes (a power of two, at most 32) neighbouring threads; every one gets the result.
template <int Lanes, class Monoid>
LATHE_DEVICE void reduce_lanes(const Monoid& monoid, typename Monoid::State& state) {
  LATHE_UNROLL
  for (int mask = Lanes / 2; mask > 0; mask /= 2) monoid.merge(state, exchange(state, mask));
}

// Over a block of Threads (a multiple of 32); every thread gets the result. `shared` holds Threads / 32 states. What it
// held before may still be in use by other threads: a caller that comes twice puts a barrier between.
template <int Threads, class Monoid>
LATHE_DEVICE void reduce_block(const Monoid& monoid, typename Monoid::State& state, typename Monoid::State* shared) {
  constexpr int kWarps = Threads / 32;
  reduce_lanes<32>(monoid, state);
  if (kWarps == 1) return;
  const int lane = thread_x() % 32;
  if (lane == 0) shared[thread_x() / 32] = state;
  barrier();
  state = lane < kWarps ? shared[lane] : monoid.start();
  reduce_lanes<32>(monoid, state);
}

// Threads of one row: a group of lanes, or the whole block.
template <int Lanes, class Monoid>
LATHE_DEVICE void reduce_row(const Monoid& monoid, typename Monoid::State& state, typename Monoid::State* shared) {
  if constexpr (Lanes <= 32)
    reduce_lanes<Lanes>(monoid, state);
  else
    reduce_block<Lanes>(monoid, state, shared);
}
