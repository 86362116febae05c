// SPDX-License-Identifier: Apache-2.0
// The reductions, as statistics of lib/accumulate.cuh. Value is what is computed with: float, double, or a 64-bit
// integer, whose sums wrap around. Beside what a monoid has:
//   void add(State&, const Value (&v)[N][W])
//   Result finish(const State&, long count)
#pragma once

#include "lib/math.cuh"
#include "lib/reduce.cuh"

namespace reduction {

template <class V>
LATHE_DEVICE V magnitude(V x) {
  return x < V(0) ? V(0) - x : x == V(0) ? V(0) : x;
}
LATHE_DEVICE float square_root(float x) { return sqrtf(x); }
LATHE_DEVICE double square_root(double x) { return sqrt(x); }
LATHE_DEVICE float logarithm(float x) { return logf(x); }
LATHE_DEVICE double logarithm(double x) { return log(x); }
LATHE_DEVICE float exponential(float x) { return expf(x); }
LATHE_DEVICE double exponential(double x) { return exp(x); }

// Kinds: what an element contributes, how contributions combine, what comes of them.
template <class V>
struct AddKind {
  using Value = V;
  LATHE_DEVICE_MEMBER V neutral() const { return V(0); }
  LATHE_DEVICE_MEMBER V take(V x) const { return x; }
  LATHE_DEVICE_MEMBER V combine(V a, V b) const { return a + b; }
  LATHE_DEVICE_MEMBER V give(V total, long) const { return total; }
};
template <class V>
struct MeanKind : AddKind<V> {
  LATHE_DEVICE_MEMBER V give(V total, long count) const {
    if (!is_float<V> && count == 0) return V(0);
    return total / static_cast<V>(count);
  }
};
template <class V>
struct AbsoluteKind : AddKind<V> {
  LATHE_DEVICE_MEMBER V take(V x) const { return magnitude(x); }
};
template <class V>
struct SquareSumKind : AddKind<V> {
  LATHE_DEVICE_MEMBER V take(V x) const { return x * x; }
};
template <class V>
struct EuclideanKind : SquareSumKind<V> {
  LATHE_DEVICE_MEMBER V give(V total, long) const { return square_root(total); }
};
template <class V>
struct LogSumKind : AddKind<V> {
  LATHE_DEVICE_MEMBER V give(V total, long) const { return logarithm(total); }
};
template <class V>
struct ProductKind : AddKind<V> {
  LATHE_DEVICE_MEMBER V neutral() const { return V(1); }
  LATHE_DEVICE_MEMBER V combine(V a, V b) const { return a * b; }
};
// NaN wins over all.
template <class V>
struct LargestKind : AddKind<V> {
  LATHE_DEVICE_MEMBER V neutral() const {
    if constexpr (is_float<V>)
      return -infinity();
    else
      return Limits<V>::kMin;
  }
  LATHE_DEVICE_MEMBER V combine(V a, V b) const { return a > b || a != a ? a : b; }
};
template <class V>
struct SmallestKind : AddKind<V> {
  LATHE_DEVICE_MEMBER V neutral() const {
    if constexpr (is_float<V>)
      return infinity();
    else
      return Limits<V>::kMax;
  }
  LATHE_DEVICE_MEMBER V combine(V a, V b) const { return a < b || a != a ? a : b; }
};

}  // namespace reduction

template <class Kind>
struct Fold : Kind {
  using Value = typename Kind::Value;
  using Result = Value;
  static constexpr bool kPositions = false;
  struct State {
    Value total;
  };
  LATHE_DEVICE_MEMBER State start() const { return {Kind::neutral()}; }
  LATHE_DEVICE_MEMBER void merge(State& into, const State& from) const {
    into.total = Kind::combine(into.total, from.total);
  }
  template <int N, int W>
  LATHE_DEVICE_MEMBER void add(State& state, const Value (&v)[N][W]) const {
    LATHE_UNROLL
    for (int i = 0; i < N; ++i) LATHE_UNROLL
    for (int j = 0; j < W; ++j) state.total = Kind::combine(state.total, Kind::take(v[i][j]));
  }
  LATHE_DEVICE_MEMBER Value finish(const State& state, long count) const { return Kind::give(state.total, count); }
};

template <class V>
using Sum = Fold<reduction::AddKind<V>>;
template <class V>
using Mean = Fold<reduction::MeanKind<V>>;
template <class V>
using AbsoluteSum = Fold<reduction::AbsoluteKind<V>>;
template <class V>
using SquareSum = Fold<reduction::SquareSumKind<V>>;
template <class V>
using EuclideanNorm = Fold<reduction::EuclideanKind<V>>;
template <class V>
using LogSum = Fold<reduction::LogSumKind<V>>;
template <class V>
using Product = Fold<reduction::ProductKind<V>>;
template <class V>
using Largest = Fold<reduction::LargestKind<V>>;
template <class V>
using Smallest = Fold<reduction::SmallestKind<V>>;

// log(sum of exp(x)): sums are relative to the largest element so far, so that nothing overflows.
template <class V>
struct LogSumExp {
  using Value = V;
  using Result = V;
  static constexpr bool kPositions = false;
  struct State {
    V largest, sum;
  };
  LATHE_DEVICE_MEMBER State start() const { return {-infinity(), V(0)}; }
  LATHE_DEVICE_MEMBER void merge(State& into, const State& from) const {
    const V largest = from.largest > into.largest ? from.largest : into.largest;
    into.sum = into.sum * rescale(into.largest, largest) + from.sum * rescale(from.largest, largest);
    into.largest = largest;
  }
  template <int N, int W>
  LATHE_DEVICE_MEMBER void add(State& state, const V (&v)[N][W]) const {
    V largest = state.largest;
    LATHE_UNROLL
    for (int i = 0; i < N; ++i) LATHE_UNROLL
    for (int j = 0; j < W; ++j) largest = v[i][j] > largest ? v[i][j] : largest;
    V sum = state.sum * rescale(state.largest, largest);
    LATHE_UNROLL
    for (int i = 0; i < N; ++i) LATHE_UNROLL
    for (int j = 0; j < W; ++j) sum += reduction::exponential(v[i][j] - base_of(largest));
    state = {largest, sum};
  }
  LATHE_DEVICE_MEMBER V finish(const State& state, long) const {
    return reduction::logarithm(state.sum) + base_of(state.largest);
  }

 private:
  LATHE_DEVICE_MEMBER V base_of(V largest) const {
    return largest > -infinity() && largest < infinity() ? largest : V(0);
  }
  LATHE_DEVICE_MEMBER V rescale(V from, V to) const {
    return from == -infinity() ? V(0) : reduction::exponential(base_of(from) - base_of(to));
  }
};
