// SPDX-License-Identifier: Apache-2.0
// What four warps do with 64 queries.
#pragma once

#include "attention/logits.cuh"
#include "attention_pipeline/memory.cuh"
#include "gemm/staging.cuh"

namespace attention_pipeline {

template <class Shape>
struct Group {
  using T = typename Shape::T;
  using Accumulator = float;
  static constexpr bool kFloat8 = Shape::kFloat8;
  static constexpr int kN = Shape::kSumColumns, kKeys = Shape::kKeys, kRowTiles = 1, kGroups = Shape::kGroups;
  static constexpr int kValueColumns = Shape::kValueColumns, kStep = Shape::kStep;
  static constexpr bool kAlongK = false;  // rows of a panel
  LATHE_DEVICE_MEMBER static int warp_row() { return row_of_warp<kGroups>(); }

  Accumulator acc[1][kN / 8][4];  // sums of weighed values: of the rows lane / 4 and lane / 4 + 8 of a warp's 16
  // Of 8-bit floats, the sums of a tile of keys: matrix units keep about 14 bits (docs/decisions/0071). `kept` is what
  // makes those before fit.
  float part[kFloat8 ? kN / 8 : 1][4], kept[2];
  unsigned weights[kKeys / kStep][4];  // of a tile of keys
  RunningSoftmax rows[2];
  PanelPlace<kAlongK, 0> queries, keys;  // of the group, and of the first stage
  PanelPlace<!kAlongK, kKeys * 128> values;
  PanelPlace<kAlongK, 0> turned;

  // `number` of the block's groups: the same in all lanes, which the compiler sees so.
  LATHE_DEVICE_MEMBER Group(const Memory<Shape>& memory, int number)
      : queries(memory.address + number * 64 * 128),
        keys(memory.address + Memory<Shape>::keys_at(0)),
        values(memory.address + Memory<Shape>::values_at(0)),
        turned(memory.address + Memory<Shape>::turned_at(0)) {}

  LATHE_DEVICE_MEMBER void clear() {
    gemm::clear_sums(acc);
    kept[0] = kept[1] = 1.0f;
    LATHE_UNROLL
    for (RunningSoftmax& row : rows) row = {-infinity(), 0.0f};
  }

  // Begins to multiply the group's queries by a tile of keys.
  LATHE_DEVICE_MEMBER void multiply_keys(float (&s)[kKeys / 8][4], int stage) const {
    constexpr bool kKeep = true;
    const auto tile = keys + stage * Shape::kStageBytes;
    wgmma_fence();
    wgmma<kKeys, kAlongK, kAlongK, 0, 0, !kKeep>(s, queries, tile, T{});
    LATHE_UNROLL
    for (int k = 1; k < Shape::kSize / kStep; ++k) {
      const int panel = k / 4, at = k % 4 * 32;
      wgmma<kKeys, kAlongK, kAlongK, 0, 0, kKeep>(s, queries + (panel * Shape::kQueries * 128 + at),
                                                  tile + (panel * kKeys * 128 + at), T{});
    }
    wgmma_commit();
  }

  // Begins to add a tile's values by their weights.
  LATHE_DEVICE_MEMBER void multiply_values(int stage) {
    constexpr bool kKeep = true;
    wgmma_fence();
    if constexpr (kFloat8) {
      const auto tile = turned + stage * Shape::kStageBytes;
      wgmma_registers<kN, kAlongK, 0, !kKeep>(part, weights[0], tile, T{});
      LATHE_UNROLL
      for (int k = 1; k < kKeys / kStep; ++k)
        wgmma_registers<kN, kAlongK, 0, kKeep>(part, weights[k], tile + k * 32, T{});
    } else {
      const auto tile = values + stage * Shape::kStageBytes;
      LATHE_UNROLL
      for (int k = 0; k < kKeys / kStep; ++k)
        wgmma_registers<kN, !kAlongK, kKeys * 128>(acc[0], weights[k], tile + k * 16 * 128, T{});
    }
    wgmma_commit();
  }

  // Of 8-bit floats, once the products have been waited for: `factors` make them fit the next tile's.
  LATHE_DEVICE_MEMBER void take_products(const float (&factors)[2]) {
    pin_sums(part);
    LATHE_UNROLL
    for (int n = 0; n < kN / 8; ++n) LATHE_UNROLL
    for (int e = 0; e < 4; ++e) acc[0][n][e] = fmaf(acc[0][n][e], kept[e / 2], part[n][e]);
    kept[0] = factors[0], kept[1] = factors[1];
  }

  // Products to numbers of which logits are a multiple, which it gives. `query`: the block's first; `key`: the tile's.
  // is_shown: whether the mask shows all of its keys, if logits are linear.
  template <bool kLinear, class Logits>
  LATHE_DEVICE_MEMBER float to_logits(float (&s)[kKeys / 8][4], const Logits& logits, long batch, long head, long query,
                                      long key, bool is_shown) const {
    query += warp() * 16;
    if constexpr (!kLinear) {
      transform(s, logits, batch, head, query, key);
      return 1.0f;
    } else {
      if constexpr (Logits::kAdds) {
        constexpr bool kInside = true;
        if (query + 16 <= logits.seen.queries && key + kKeys <= logits.seen.keys)
          add_numbers<kInside>(s, logits, {batch, head, query, key});
        else
          add_numbers<!kInside>(s, logits, {batch, head, query, key});
      }
      if (!logits.seen.sees_all(query, 16, key, kKeys)) hide(s, logits, query, key);
      if (!is_shown) hide_by_mask(s, logits, batch, head, key);
      return Logits::kAdds ? 1.0f : logits.scale * kLog2E;
    }
  }

  // Products to logits: what is added is that of a key's distance from the query, or of the key for all queries. Of a
  // query and of the eighth behind it, and keys that are eight apart, the distances are the same.
  template <bool kInside, class Logits>
  LATHE_DEVICE_MEMBER void add_numbers(float (&s)[kKeys / 8][4], const Logits& logits, const long (&first)[4]) const {
    const float unit = logits.scale * kLog2E;
    const long key = first[3] + lane() % 4 * 2, places = key - first[2] - lane() / 4;
    float behind[2] = {0.0f, 0.0f}, own[2] = {0.0f, 0.0f};  // of the eighth query behind, and of the first one
    if constexpr (Logits::kHasDistances) logits.template distances_from<kInside>(behind, first[1], places - 8);
    LATHE_UNROLL
    for (int n = 0; n < kKeys / 8; ++n) {
      float of_keys[2] = {0.0f, 0.0f};
      if constexpr (Logits::kHasDistances) logits.template distances_from<kInside>(own, first[1], places + n * 8);
      if constexpr (Logits::kHasNumbers)
        logits.template numbers_of_keys<kInside>(of_keys, {first[0], first[1], 0, key + n * 8});
      LATHE_UNROLL
      for (int e = 0; e < 2; ++e) {
        s[n][e] = fmaf(s[n][e], unit, own[e] + of_keys[e]);
        s[n][2 + e] = fmaf(s[n][2 + e], unit, behind[e] + of_keys[e]);
        behind[e] = own[e];
      }
    }
  }

  // Keys that a row does not see by its place.
  template <class Logits>
  LATHE_DEVICE_MEMBER void hide(float (&s)[kKeys / 8][4], const Logits& logits, long query, long key) const {
    LATHE_UNROLL
    for (int half = 0; half < 2; ++half) {
      const long row = query + lane() / 4 + half * 8, own = key + lane() % 4 * 2;  // the lane's first key
      const int first = Logits::Seen::kIsWindow ? within(logits.seen.first_of(row) - own) : 0;
      const int end = within(logits.seen.end_of(row) - own);
      LATHE_UNROLL
      for (int n = 0; n < kKeys / 8; ++n) LATHE_UNROLL
      for (int e = 0; e < 2; ++e)
        if (n * 8 + e < first || n * 8 + e >= end) s[n][2 * half + e] = -infinity();
    }
  }
  // Keys that a mask hides from all queries.
  template <class Logits>
  LATHE_DEVICE_MEMBER void hide_by_mask(float (&s)[kKeys / 8][4], const Logits& logits, long batch, long head,
                                        long key) const {
    LATHE_UNROLL
    for (int n = 0; n < kKeys / 8; ++n) LATHE_UNROLL
    for (int e = 0; e < 2; ++e)
      if (logits.hides(batch, head, key + n * 8 + lane() % 4 * 2 + e)) s[n][e] = s[n][2 + e] = -infinity();
  }
  LATHE_DEVICE_MEMBER static int within(long keys) {
    return keys < 0 ? 0 : keys > kKeys ? kKeys : static_cast<int>(keys);
  }

  template <class Logits>
  LATHE_DEVICE_MEMBER void transform(float (&s)[kKeys / 8][4], const Logits& logits, long batch, long head, long query,
                                     long key) const {
    if (logits.is_plain(query, 16, key, kKeys)) {
      LATHE_UNROLL
      for (int n = 0; n < kKeys / 8; ++n) LATHE_UNROLL
      for (int e = 0; e < 4; ++e) s[n][e] = logits.plain(s[n][e]);
      return;
    }
    LATHE_UNROLL
    for (int n = 0; n < kKeys / 8; ++n) LATHE_UNROLL
    for (int half = 0; half < 2; ++half) {
      const long c[4] = {batch, head, query + lane() / 4 + half * 8, key + n * 8 + lane() % 4 * 2};
      float pair[2] = {s[n][2 * half], s[n][2 * half + 1]};
      logits.transform(pair, c);
      s[n][2 * half] = pair[0], s[n][2 * half + 1] = pair[1];
    }
  }

  // The largest of a row's numbers, to all who have some. It has two chains, so that none waits for itself.
  LATHE_DEVICE_MEMBER static float largest_of(const float (&s)[kKeys / 8][4], int half) {
    float even = s[0][2 * half], odd = s[0][2 * half + 1];
    LATHE_UNROLL
    for (int n = 1; n < kKeys / 8; ++n) even = fmaxf(even, s[n][2 * half]), odd = fmaxf(odd, s[n][2 * half + 1]);
    float largest = fmaxf(even, odd);
    largest = fmaxf(largest, shuffle_xor(largest, 1));
    return fmaxf(largest, shuffle_xor(largest, 2));
  }

  // Logits, s * unit, to weights. Weights are relative to what was the row's largest logit when it was last looked for:
  // that is when weights have become so large that T may not hold them, or there was none. This leaves out the search,
  // which all others would wait for, of nearly all tiles. Rows do not depend on their neighbours. kFirst: no row has
  // had a tile before.
  template <bool kFirst, class Logits>
  LATHE_DEVICE_MEMBER void make_weights(const Logits& logits, const float (&s)[kKeys / 8][4], float unit) {
    constexpr float kMost = 0x1p15f;
    float bases[2] = {rows[0].largest, rows[1].largest}, sums[2];  // of a row without: sums that are no number
    bool large[2] = {kFirst, kFirst};
    if constexpr (!kFirst) {
      exponentiate(logits, s, unit, bases, sums);
      large[0] = !(sums[0] <= kMost), large[1] = !(sums[1] <= kMost);
    }
    wgmma_wait<0>();  // nothing is on its way: for the compiler, as sums change; all warps of a group have to come by
    if (kFirst || ballot(large[0] || large[1]) != 0) {
      pin_sums(acc[0]);
      LATHE_UNROLL
      for (int half = 0; half < 2; ++half) {
        const float largest = logits.reference(largest_of(s, half) * unit);
        const bool is_raised = (ballot(large[half]) >> (lane() & 28) & 15) != 0;
        const float factor = rows[half].raise(is_raised ? largest : rows[half].largest);
        bases[half] = rows[half].base();
        LATHE_UNROLL
        for (int n = 0; n < kN / 8; ++n) LATHE_UNROLL
        for (int e = 2 * half; e < 2 * half + 2; ++e) acc[0][n][e] *= factor;
      }
      exponentiate(logits, s, unit, bases, sums);
    }
    LATHE_UNROLL
    for (int half = 0; half < 2; ++half) rows[half].sum += sums[half];
  }

  // Weights, as the left operand of a product, and the sums of those that the thread has of its rows, in two chains
  // each.
  template <class Logits>
  LATHE_DEVICE_MEMBER void exponentiate(const Logits& logits, const float (&s)[kKeys / 8][4], float unit,
                                        const float (&bases)[2], float (&sums)[2]) {
    float chains[2][2] = {};
    LATHE_UNROLL
    for (int k = 0; k < kKeys / kStep; ++k) LATHE_UNROLL
    for (int i = 0; i < 4; ++i) {
      const float(&scores)[4] = s[2 * k + i / 2];
      const int half = i % 2;
      float pair[2];
      LATHE_UNROLL
      for (int e = 0; e < 2; ++e) {
        pair[e] = logits.rounded(exp2_fast(fmaf(scores[2 * half + e], unit, -bases[half])));
        chains[half][e] += pair[e];
      }
      weights[k][i] = pack_floats<T>(pair[0], pair[1]);
    }
    LATHE_UNROLL
    for (int half = 0; half < 2; ++half) sums[half] = chains[half][0] + chains[half][1];
  }

  // Of 8-bit floats: logits to weights that stay where those are, relative to the largest by now; `factors` make what
  // was summed before fit. They are rounded as they are packed, and summed up by the matrix units.
  template <class Logits>
  LATHE_DEVICE_MEMBER void exponentiate_float8(const Logits& logits, float (&s)[kKeys / 8][4], float (&factors)[2],
                                               float unit) {
    LATHE_UNROLL
    for (int half = 0; half < 2; ++half) {
      factors[half] = rows[half].raise(logits.reference(largest_of(s, half) * unit));
      const float base = rows[half].base();
      LATHE_UNROLL
      for (int n = 0; n < kKeys / 8; ++n) LATHE_UNROLL
      for (int e = 2 * half; e < 2 * half + 2; ++e) s[n][e] = exp2_fast(fmaf(s[n][e], unit, -base));
    }
  }
  LATHE_DEVICE_MEMBER void keep_float8_weights(const float (&s)[kKeys / 8][4]) {
    LATHE_UNROLL
    for (int k = 0; k < kKeys / kStep; ++k) LATHE_UNROLL
    for (int e = 0; e < 4; ++e) {
      const float(&even)[4] = s[4 * k + e / 2 * 2], (&odd)[4] = s[4 * k + e / 2 * 2 + 1];
      weights[k][e] = pack_float8<T>(even[e % 2 * 2], even[e % 2 * 2 + 1], odd[e % 2 * 2], odd[e % 2 * 2 + 1]);
    }
  }

  // Sums to means, of the head of values at kv.
  template <class Logits, class V>
  LATHE_DEVICE_MEMBER void finish(const Logits& logits, long head, const V& values, const long (&kv)[4]) {
    LATHE_UNROLL
    for (int half = 0; half < 2; ++half) {
      float sum = kFloat8 ? acc[0][kN / 8 - 1][2 * half] : rows[half].sum;
      if constexpr (!kFloat8) {
        sum += shuffle_xor(sum, 1);
        sum += shuffle_xor(sum, 2);
      }
      const ToMeans mean = logits.to_means({rows[half].largest, sum}, head);
      LATHE_UNROLL
      for (int n = 0; n < kN / 8; ++n) LATHE_UNROLL
      for (int e = 2 * half; e < 2 * half + 2; ++e) acc[0][n][e] = mean(acc[0][n][e]);
      if constexpr (Logits::kMeanForNone)
        if (mean.is_of_all) all_values(half, values, kv);
    }
  }

  // The means of all values to the rows of a half.
  template <class V>
  LATHE_DEVICE_MEMBER void all_values(int half, const V& values, const long (&kv)[4]) {
    LATHE_UNROLL
    for (int n = 0; n < kN / 8; ++n) {
      const long column = n * 8 + lane() % 4 * 2;
      if (column >= values.dim(3)) continue;
      float pair[2];
      mean_of_values(pair, values, kv, column);
      LATHE_UNROLL
      for (int e = 0; e < 4; ++e)
        if (e / 2 == half) acc[0][n][e] = pair[e % 2];
    }
  }
};

}  // namespace attention_pipeline
