// SPDX-License-Identifier: Apache-2.0
// What becomes of the product of a query and a key before the softmax. Logits are in units of log 2, so that 2 ** x
// gives the weights. Keys that booleans hide have `hidden`, finite unless it is minus infinity.
#pragma once

#include "attention/absent.cuh"
#include "attention/seen_keys.cuh"
#include "lib/intrinsics.cuh"
#include "lib/math.cuh"
#include "lib/tensor.cuh"

inline constexpr float kLog2E = 1.44269504088896340736f;

// The softmax of a row as its keys come in: the largest logit so far, and the sum of 2 ** (logit - largest).
struct RunningSoftmax {
  float largest, sum;

  // Takes in a larger maximum; gives the factor for what was summed by now.
  LATHE_DEVICE_MEMBER float raise(float to) {
    const float next = to > largest ? to : largest;
    const float factor = largest == -infinity() ? 0.0f : exp2_fast(largest - next);
    largest = next;
    sum *= factor;
    return factor;
  }
  // What logits are relative to: a row without visible keys by now has no maximum.
  LATHE_DEVICE_MEMBER float base() const { return largest == -infinity() ? 0.0f : largest; }
};

// Makes the means of a row's values of their sums by weights, unless it `is_of_all`: see mean_of_values().
struct ToMeans {
  float factor;
  bool is_zero, is_of_all = false;
  LATHE_DEVICE_MEMBER float operator()(float sum) const { return is_zero ? 0.0f : sum * factor; }
};

// All values' means: of columns from `column` on of the head of keys at kv.
template <int W, class Values>
LATHE_DEVICE void mean_of_values(float (&v)[W], const Values& values, const long (&kv)[4], long column) {
  const long keys = values.dim(2), left = values.dim(3) - column;
  LATHE_UNROLL
  for (float& sum : v) sum = 0.0f;
  for (long key = 0; key < keys; ++key) {
    const long at[4] = {kv[0], kv[1], key, column};
    float add[W] = {};
    load<3, W>(values, at, add, left < W ? static_cast<int>(left) : W);
    LATHE_UNROLL
    for (int j = 0; j < W; ++j) v[j] += add[j];
  }
  LATHE_UNROLL
  for (float& sum : v) sum = sum / static_cast<float>(keys);
}

// Whether a mask is of booleans, which say what keys are seen.
template <class Mask>
struct IsOfBooleans {
  static constexpr bool kValue = is_same<typename Mask::Type, bool>;
};
template <>
struct IsOfBooleans<Unmasked> {
  static constexpr bool kValue = false;
};

// Float8: weights are rounded to f8e4m3, as ops/float8_weights.h says.
template <class Mask, class Seen_, bool Capped, bool MeanForNone, bool ZerosForNan, class Sinks = Unsunk,
          bool Float8 = false, class Distances = Undistanced>
struct Logits {
  using Seen = Seen_;
  static constexpr bool kMeanForNone = MeanForNone, kHasDistances = !is_same<Distances, Undistanced>;
  static constexpr bool kHasMask = !is_same<Mask, Unmasked>, kHasBooleans = IsOfBooleans<Mask>::kValue;
  static constexpr bool kHasNumbers = kHasMask && !kHasBooleans;
  static constexpr bool kAdds = kHasNumbers || kHasDistances;  // to scores
  Mask mask;                                                   // broadcast to [b, h, queries, keys]
  float scale, cap, hidden;
  Seen seen;              // by places alone
  Sinks sinks{};          // of each head a logit that has weight, and no value
  Distances distances{};  // [h, queries + keys - 1]: what is added by key - query; booleans then hide by -inf

  // What weights are relative to where that is the largest logit.
  LATHE_DEVICE_MEMBER static float reference(float largest) { return Float8 ? ceilf(largest) - 8.0f : largest; }
  // A weight as the values are multiplied by it, and as it counts in the sum. Those of a reference that has yet to be
  // raised may be infinite, of which no multiples are near: they stay beyond what f16 holds.
  LATHE_DEVICE_MEMBER static float rounded(float weight) {
    return Float8 ? math::nearest_multiple(math::at_most(weight, 0x1p16f), 0x1p-3f, 0x1p-9f) : weight;
  }

  // Products of the query c[2] with the keys c[3], c[3] + 1, ...
  template <int W>
  LATHE_DEVICE_MEMBER void transform(float (&v)[W], const long (&c)[4]) const {
    float add[W];
    read_added(add, c);
    apply(v, add, c);
  }
  // What is added to the scores of these keys, or booleans of the mask. It may be anything for keys that have no end,
  // and is 0 where nothing is added.
  template <int W>
  LATHE_DEVICE_MEMBER void read_added(float (&add)[W], const long (&c)[4]) const {
    LATHE_UNROLL
    for (int j = 0; j < W; ++j) add[j] = 0.0f;
    if constexpr (kHasMask) {
      const long left = seen.end_of(c[2]) - c[3];
      const long at[4] = {c[0], c[1], c[2] < seen.queries ? c[2] : seen.queries - 1, c[3]};
      load<3>(mask, at, add, left < 0 ? 0 : left < W ? static_cast<int>(left) : W);
    }
    if constexpr (kHasDistances) {
      LATHE_UNROLL
      for (int j = 0; j < W; ++j) {
        const float own = distance(c[1], c[3] + j - c[2]);
        add[j] = !kHasBooleans ? add[j] + own : add[j] != 0.0f ? own : -infinity();
      }
    }
  }
  // The same as logits: of neighbouring keys, the first so far behind a query; and of keys c[3], ... for all queries.
  // kInside: there are such.
  template <bool kInside, int W>
  LATHE_DEVICE_MEMBER void distances_from(float (&add)[W], long head, long places) const {
    LATHE_UNROLL
    for (int j = 0; j < W; ++j) add[j] = as_logit(distance<kInside>(head, places + j));
  }
  template <bool kInside, int W>
  LATHE_DEVICE_MEMBER void numbers_of_keys(float (&add)[W], const long (&c)[4]) const {
    const long left = kInside ? W : seen.keys - c[3];
    load<3>(mask, c, add, left < 0 ? 0 : left < W ? static_cast<int>(left) : W);
    LATHE_UNROLL
    for (float& number : add) number = as_logit(number);
  }
  // What is added to the score of a key so far behind a query; anything where there are no such, unless kInside.
  template <bool kInside = false>
  LATHE_DEVICE_MEMBER float distance(long head, long places) const {
    const long place = places + seen.queries - 1, last = seen.queries + seen.keys - 2;
    const long at = kInside ? place : place < 0 ? 0 : place < last ? place : last;
    return to_float(distances.data[head * distances.stride(0) + at * distances.stride(1)]);
  }
  // The products to which that is added to logits.
  template <int W>
  LATHE_DEVICE_MEMBER void apply(float (&v)[W], const float (&add)[W], const long (&c)[4]) const {
    LATHE_UNROLL
    for (int j = 0; j < W; ++j) v[j] = Capped ? cap * kLog2E * tanhf(v[j] * (scale / cap)) : v[j] * (scale * kLog2E);
    LATHE_UNROLL
    for (int j = 0; j < W; ++j) {
      if constexpr (kAdds)
        v[j] = plus_mask(v[j], add[j]);
      else if constexpr (kHasMask)
        v[j] = add[j] != 0.0f ? v[j] : hidden;
    }
    const long first = Seen::kIsWindow ? seen.first_of(c[2]) - c[3] : 0, end = seen.end_of(c[2]) - c[3];
    LATHE_UNROLL
    for (int j = 0; j < W; ++j)
      if (j < first || j >= end) v[j] = -infinity();
  }
  // Whether booleans that are the same for all queries show all of so many keys; of a warp.
  template <int kKeys>
  LATHE_DEVICE_MEMBER bool shows_all(long batch, long head, long key) const {
    if constexpr (!kHasBooleans) return true;
    bool is_hidden = false;
    LATHE_UNROLL
    for (int i = 0; i < kKeys; i += 32) is_hidden |= hides(batch, head, key + i + lane());
    return ballot(is_hidden) == 0;
  }
  LATHE_DEVICE_MEMBER bool hides(long batch, long head, long key) const {
    if constexpr (!kHasBooleans) {
      return false;
    } else {
      const long at[4] = {batch, head, 0, key};
      return key < seen.keys && to_float(mask.data[offset_of(mask, at)]) == 0.0f;
    }
  }
  // Whether a key to which that is added is seen; numbers up to `low` hide it.
  LATHE_DEVICE_MEMBER static bool is_seen(float add, float low) {
    if constexpr (kAdds)
      return !(add <= low);
    else
      return !kHasMask || add != 0.0f;
  }
  LATHE_DEVICE_MEMBER static float as_logit(float number) { return plus_mask(0.0f, number); }
  // Only -inf hides a key from queries that see no other: the lowest numbers must not become that.
  LATHE_DEVICE_MEMBER static float plus_mask(float v, float mask) {
    const float sum = v + mask * kLog2E;
    return sum == -infinity() && mask != -infinity() ? -0x1.fffffep127f : sum;
  }
  // Whether plain() does what transform() does, for so many queries and keys from these on.
  LATHE_DEVICE_MEMBER bool is_plain(long query, int count, long key, int keys) const {
    return !kHasMask && !kHasDistances && seen.sees_all(query, count, key, keys);
  }
  LATHE_DEVICE_MEMBER float plain(float v) const {
    return Capped ? cap * kLog2E * tanhf(v * (scale / cap)) : v * (scale * kLog2E);
  }
  // Of a row of that head that has taken in the keys of all who share it: the sink counts here, once.
  LATHE_DEVICE_MEMBER ToMeans to_means(RunningSoftmax row, long head) const {
    if constexpr (is_same<Sinks, Unsunk>) {
      const bool is_none = MeanForNone && row.largest == -infinity() && row.sum == 0.0f && seen.keys > 0;
      return {1.0f / row.sum, seen.keys == 0 || (ZerosForNan && !(row.sum > 0.0f)), is_none};
    } else {
      const long at[1] = {head};
      float sink[1];
      load<0>(sinks, at, sink, 1);
      const float logit = as_logit(sink[0]), own = row.raise(logit);
      const float factor = own / (row.sum + exp2_fast(logit - row.base()));
      return {factor, seen.keys == 0 || (ZerosForNan && !(factor >= 0.0f))};
    }
  }
};

// Which head of which batch a block works on. Each head has so many blocks, which are numbered along x, one head after
// the other: along y a grid ends at 65535.
struct HeadOfBlock {
  long batch, head;
  int block;  // of the head's

  LATHE_DEVICE_MEMBER HeadOfBlock(long heads, long blocks) {
    const auto number = static_cast<unsigned>(block_x()), each = static_cast<unsigned>(blocks);
    const long place = number / each;
    batch = place / heads, head = place % heads, block = static_cast<int>(number % each);
  }
};
