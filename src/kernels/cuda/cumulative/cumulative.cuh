// SPDX-License-Identifier: Apache-2.0
// Running sums and products along lines of a tensor. Short lines, or those that lie side by side, are a thread's each;
// of others a warp or a block takes as many elements at a time as it has threads, adds up what lies before each of them
// (Hillis and Steele, "Data parallel algorithms", 1986), and carries the total on.
#pragma once

#include "generic/element.cuh"
#include "lib/space.cuh"

template <bool Sum, class W>
LATHE_DEVICE W start_of() {
  return Sum ? W(0) : W(1);
}
template <bool Sum, class W>
LATHE_DEVICE W combine(W before, W value) {
  return Sum ? before + value : before * value;
}

// The combination of this lane's value with those of the lanes before.
template <bool Sum, class W>
LATHE_DEVICE W scan_warp(W value) {
  LATHE_UNROLL
  for (int distance = 1; distance < 32; distance *= 2) {
    const W before = shuffle_up(value, distance);
    if (lane() >= distance) value = combine<Sum>(before, value);
  }
  return value;
}

// By Threads threads, a warp or a block: what lies before this thread's value, starting with `carry`, which becomes the
// combination of all. `shared` holds Threads / 32 values.
template <bool Sum, int Threads, class W>
LATHE_DEVICE W scan_before(W value, W& carry, W* shared) {
  const W inclusive = scan_warp<Sum>(value);
  W before = shuffle_up(inclusive, 1);
  before = combine<Sum>(carry, lane() == 0 ? start_of<Sum, W>() : before);
  W total = shuffle_idx(inclusive, 31);
  if constexpr (Threads > 32) {
    if (lane() == 31) shared[warp()] = inclusive;
    barrier();
    // A block has 32 warps at the most: each warp combines the totals of all once more.
    const W totals = scan_warp<Sum>(lane() < Threads / 32 ? shared[lane()] : start_of<Sum, W>());
    const W of_warps = shuffle_idx(totals, warp() == 0 ? 0 : warp() - 1);
    if (warp() > 0) before = combine<Sum>(of_warps, before);
    total = shuffle_idx(totals, 31);
    barrier();
  }
  carry = combine<Sum>(carry, total);
  return before;
}

template <class W, int Kept, bool Sum, bool Exclusive, bool Reverse, class In, class Out>
LATHE_DEVICE void scan_by_thread(const In& x, const Out& y, long lines) {
  const long line = static_cast<long>(block_x()) * block_threads() + thread_x();
  dependency_wait();
  if (line >= lines) return;
  long c[In::kRank];
  unflatten_dims<0, Kept>(x, line, c);
  const long count = x.dim(Kept);
  W total = start_of<Sum, W>();
  for (long i = 0; i < count; ++i) {
    c[Kept] = Reverse ? count - 1 - i : i;
    const W next = combine<Sum>(total, widen_to<W>(x.data[offset_of(x, c)]));
    y.data[offset_of(y, c)] = narrow<typename Out::Type>(Exclusive ? total : next);
    total = next;
  }
}

// Threads for each line: 32, of which a block has as many as it likes, or the whole block.
template <class W, int Kept, bool Sum, bool Exclusive, bool Reverse, int Threads, class In, class Out>
LATHE_DEVICE void scan_together(const In& x, const Out& y, long lines) {
  W* shared = reinterpret_cast<W*>(dynamic_shared());
  const long line = (static_cast<long>(block_x()) * block_threads() + thread_x()) / Threads;
  dependency_wait();
  if (line >= lines) return;  // whole warps, and blocks with several lines have no barriers
  long c[In::kRank];
  unflatten_dims<0, Kept>(x, line, c);
  const long count = x.dim(Kept);
  W carry = start_of<Sum, W>();
  for (long first = 0; first < count; first += Threads) {
    const long i = first + thread_x() % Threads;
    c[Kept] = Reverse ? count - 1 - i : i;
    const W value = i < count ? widen_to<W>(x.data[offset_of(x, c)]) : start_of<Sum, W>();
    const W before = scan_before<Sum, Threads>(value, carry, shared);
    if (i < count)
      y.data[offset_of(y, c)] = narrow<typename Out::Type>(Exclusive ? before : combine<Sum>(before, value));
  }
}
