// SPDX-License-Identifier: Apache-2.0
// The position of a row's largest or smallest element, as a reduction. NaN beats all; of equals the first wins, or the
// last.
#pragma once

#include "reduce/reduce.cuh"

template <class V, bool Largest, bool Last>
struct Extreme {
  using Value = V;
  using Result = int64;
  static constexpr bool kPositions = true;
  struct State {
    V value;
    long position;  // -1 = none yet
  };

  LATHE_DEVICE_MEMBER State start() const { return {V(0), -1}; }
  LATHE_DEVICE_MEMBER void merge(State& into, const State& from) const {
    if (beats(from, into)) into = from;
  }
  template <int N, int W>
  LATHE_DEVICE_MEMBER void add(State& state, const V (&v)[N][W], long first, long step) const {
    LATHE_UNROLL
    for (int i = 0; i < N; ++i) LATHE_UNROLL
    for (int j = 0; j < W; ++j) merge(state, State{v[i][j], first + i * step + j});
  }
  LATHE_DEVICE_MEMBER int64 finish(const State& state, long) const { return state.position; }

 private:
  LATHE_DEVICE_MEMBER bool beats(const State& a, const State& b) const {
    if (a.position < 0 || b.position < 0) return b.position < 0;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan) return a_nan;
    if (a_nan || a.value == b.value) return Last ? a.position > b.position : a.position < b.position;
    return Largest ? a.value > b.value : a.value < b.value;
  }
};
