// SPDX-License-Identifier: Apache-2.0
// What a normalisation knows of a row: its moments, squares, p-th powers or exponentials. Beside what lib/reduce.cuh
// asks of a monoid a statistic has
//   Value           float
//   void add(State&, const float (&v)[N][W])                                takes in elements
//   void absorb(State&, float (&v)[N][W], const bool (&inside)[N])          the same for elements that stay in
//   registers:
//                                                                           may rewrite them in terms of the state
//   Factors finish(const State& row, float length)                          for apply()
//   Factors finish_absorbed(const State& row, const State& own, float length)  for apply_absorbed()
//   void apply(float (&v)[W], const Factors&), apply_absorbed(...)          the normalised elements
#pragma once

#include "lib/math.cuh"
#include "lib/reduce.cuh"

// (x - mean) / sqrt(variance + epsilon).
struct Moments {
  using Value = float;
  static constexpr bool kPositions = false;
  struct State {
    float count, mean, squares;  // squares: of the distances to the mean
  };
  struct Factors {
    float mean, inverse;
  };
  float epsilon;

  LATHE_DEVICE_MEMBER State start() const { return {0.0f, 0.0f, 0.0f}; }
  LATHE_DEVICE_MEMBER void merge(State& into, const State& from) const {
    const float count = into.count + from.count;
    const float weight = count > 0.0f ? from.count / count : 0.0f;
    const float distance = from.mean - into.mean;
    into.squares += from.squares + distance * distance * (into.count * weight);
    into.mean += distance * weight;
    into.count = count;
  }
  // Several at once, with one division and no chain of them.
  template <int N>
  LATHE_DEVICE_MEMBER State all(const State (&states)[N]) const {
    State sum = start();
    const float near = states[0].mean;  // products of counts and means themselves might be infinite
    LATHE_UNROLL
    for (const State& state : states) sum.count += state.count, sum.mean += state.count * (state.mean - near);
    sum.mean = sum.count > 0.0f ? near + sum.mean / sum.count : 0.0f;
    LATHE_UNROLL
    for (const State& state : states) {
      const float distance = state.mean - sum.mean;
      sum.squares += state.squares + state.count * distance * distance;
    }
    return sum;
  }
  template <int N, int W>
  LATHE_DEVICE_MEMBER void add(State& state, const float (&v)[N][W]) const {
    bool inside[N];
    LATHE_UNROLL
    for (int i = 0; i < N; ++i) inside[i] = true;
    State next = start();
    take(next, v, inside);
    merge(state, next);
  }
  template <int N, int W>
  LATHE_DEVICE_MEMBER void absorb(State& state, float (&v)[N][W], const bool (&inside)[N]) const {
    take(state, v, inside);
  }
  LATHE_DEVICE_MEMBER Factors finish(const State& row, float length) const {
    return {row.mean, 1.0f / sqrtf(row.squares / length + epsilon)};
  }
  LATHE_DEVICE_MEMBER Factors finish_absorbed(const State& row, const State&, float length) const {
    return finish(row, length);
  }
  template <int W>
  LATHE_DEVICE_MEMBER void apply(float (&v)[W], const Factors& factors) const {
    LATHE_UNROLL
    for (int i = 0; i < W; ++i) v[i] = (v[i] - factors.mean) * factors.inverse;
  }
  template <int W>
  LATHE_DEVICE_MEMBER void apply_absorbed(float (&v)[W], const Factors& factors) const {
    apply(v, factors);
  }

 private:
  template <int N, int W>
  LATHE_DEVICE_MEMBER void take(State& state, const float (&v)[N][W], const bool (&inside)[N]) const {
    float sum = 0.0f, count = 0.0f;
    LATHE_UNROLL
    for (int i = 0; i < N; ++i) {
      if (!inside[i]) continue;
      count += W;
      LATHE_UNROLL
      for (int j = 0; j < W; ++j) sum += v[i][j];
    }
    const float mean = count > 0.0f ? sum / count : 0.0f;
    float squares = 0.0f;
    LATHE_UNROLL
    for (int i = 0; i < N; ++i) {
      if (!inside[i]) continue;
      LATHE_UNROLL
      for (int j = 0; j < W; ++j) squares += (v[i][j] - mean) * (v[i][j] - mean);
    }
    state = {count, mean, squares};
  }
};

// Sums of a function of each element, and the factor that they give.
template <class Kind>
struct Powers : Kind {
  using Value = float;
  static constexpr bool kPositions = false;
  struct State {
    float sum;
  };
  struct Factors {
    float factor;
  };

  LATHE_DEVICE_MEMBER State start() const { return {0.0f}; }
  LATHE_DEVICE_MEMBER void merge(State& into, const State& from) const { into.sum += from.sum; }
  template <int N, int W>
  LATHE_DEVICE_MEMBER void add(State& state, const float (&v)[N][W]) const {
    LATHE_UNROLL
    for (int i = 0; i < N; ++i) LATHE_UNROLL
    for (int j = 0; j < W; ++j) state.sum += Kind::power(v[i][j]);
  }
  template <int N, int W>
  LATHE_DEVICE_MEMBER void absorb(State& state, float (&v)[N][W], const bool (&inside)[N]) const {
    state = start();
    LATHE_UNROLL
    for (int i = 0; i < N; ++i) {
      if (!inside[i]) continue;
      LATHE_UNROLL
      for (int j = 0; j < W; ++j) state.sum += Kind::power(v[i][j]);
    }
  }
  LATHE_DEVICE_MEMBER Factors finish(const State& row, float length) const { return {Kind::factor(row.sum, length)}; }
  LATHE_DEVICE_MEMBER Factors finish_absorbed(const State& row, const State&, float length) const {
    return finish(row, length);
  }
  template <int W>
  LATHE_DEVICE_MEMBER void apply(float (&v)[W], const Factors& factors) const {
    LATHE_UNROLL
    for (int i = 0; i < W; ++i) v[i] *= factors.factor;
  }
  template <int W>
  LATHE_DEVICE_MEMBER void apply_absorbed(float (&v)[W], const Factors& factors) const {
    apply(v, factors);
  }
};

// x / sqrt(mean of squares + epsilon).
struct SquareKind {
  float epsilon;
  LATHE_DEVICE_MEMBER float power(float x) const { return x * x; }
  LATHE_DEVICE_MEMBER float factor(float sum, float length) const { return 1.0f / sqrtf(sum / length + epsilon); }
};
using MeanSquare = Powers<SquareKind>;

// x / p-norm; a row of zeros stays.
template <int P>
struct NormKind {
  LATHE_DEVICE_MEMBER float power(float x) const {
    return P == 1 ? fabsf(x) : P == 2 ? x * x : powf(fabsf(x), static_cast<float>(P));
  }
  LATHE_DEVICE_MEMBER float factor(float sum, float) const {
    if (sum == 0.0f) return 1.0f;
    return 1.0f / (P == 1 ? sum : P == 2 ? sqrtf(sum) : powf(sum, 1.0f / static_cast<float>(P)));
  }
};
template <int P>
using Norm = Powers<NormKind<P>>;

// exp(x - largest) / sum of those, or its logarithm. Sums are relative to the largest element so far.
template <bool Log>
struct Exponentials {
  using Value = float;
  static constexpr bool kPositions = false;
  struct State {
    float largest, sum;
  };
  struct Factors {
    float largest, factor;  // Log: y = x - largest - factor; else y = exp(x - largest) * factor
  };

  LATHE_DEVICE_MEMBER State start() const { return {-infinity(), 0.0f}; }
  LATHE_DEVICE_MEMBER void merge(State& into, const State& from) const {
    const float largest = larger(into.largest, from.largest);
    into.sum = into.sum * rescale(into.largest, largest) + from.sum * rescale(from.largest, largest);
    into.largest = largest;
  }
  template <int N, int W>
  LATHE_DEVICE_MEMBER void add(State& state, const float (&v)[N][W]) const {
    float largest = state.largest;
    LATHE_UNROLL
    for (int i = 0; i < N; ++i) LATHE_UNROLL
    for (int j = 0; j < W; ++j) largest = larger(largest, v[i][j]);
    float sum = state.sum * rescale(state.largest, largest);
    const float base = base_of(largest);
    LATHE_UNROLL
    for (int i = 0; i < N; ++i) LATHE_UNROLL
    for (int j = 0; j < W; ++j) sum += expf(v[i][j] - base);
    state = {largest, sum};
  }
  template <int N, int W>
  LATHE_DEVICE_MEMBER void absorb(State& state, float (&v)[N][W], const bool (&inside)[N]) const {
    float largest = -infinity();
    LATHE_UNROLL
    for (int i = 0; i < N; ++i) {
      if (!inside[i]) continue;
      LATHE_UNROLL
      for (int j = 0; j < W; ++j) largest = larger(largest, v[i][j]);
    }
    const float base = base_of(largest);
    float sum = 0.0f;
    LATHE_UNROLL
    for (int i = 0; i < N; ++i) {
      if (!inside[i]) continue;
      LATHE_UNROLL
      for (int j = 0; j < W; ++j) {
        const float power = expf(v[i][j] - base);
        sum += power;
        if (!Log) v[i][j] = power;
      }
    }
    state = {largest, sum};
  }
  LATHE_DEVICE_MEMBER Factors finish(const State& row, float) const {
    return {row.largest, Log ? logf(row.sum) : 1.0f / row.sum};
  }
  // The elements are exponentials relative to the thread's own largest one.
  LATHE_DEVICE_MEMBER Factors finish_absorbed(const State& row, const State& own, float length) const {
    if (Log) return finish(row, length);
    const bool defined = row.largest > -infinity() && row.largest < infinity();  // else the row is not a number
    return {0.0f, defined ? rescale(own.largest, row.largest) / row.sum : row.largest - row.largest};
  }
  template <int W>
  LATHE_DEVICE_MEMBER void apply(float (&v)[W], const Factors& factors) const {
    // An infinite or undefined largest element makes every element of the row a NaN.
    const float undefined = factors.largest - factors.largest;
    LATHE_UNROLL
    for (int i = 0; i < W; ++i) {
      const float distance = v[i] - factors.largest + undefined;
      v[i] = Log ? distance - factors.factor : expf(distance) * factors.factor;
    }
  }
  template <int W>
  LATHE_DEVICE_MEMBER void apply_absorbed(float (&v)[W], const Factors& factors) const {
    if (Log) return apply(v, factors);
    LATHE_UNROLL
    for (int i = 0; i < W; ++i) v[i] *= factors.factor;
  }

 private:
  // A NaN need not win: its exponential makes the sum a NaN.
  LATHE_DEVICE_MEMBER float larger(float a, float b) const { return a < b ? b : a; }
  // What sums are relative to, so that infinite elements do not make a NaN of a finite sum.
  LATHE_DEVICE_MEMBER float base_of(float largest) const {
    return largest > -infinity() && largest < infinity() ? largest : 0.0f;
  }
  // The factor that makes a sum relative to `from` one relative to `to`.
  LATHE_DEVICE_MEMBER float rescale(float from, float to) const {
    return from == -infinity() ? 0.0f : expf(base_of(from) - base_of(to));
  }
};
