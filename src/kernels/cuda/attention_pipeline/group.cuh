// SPDX-License-Identifier: Apache-2.0
// What four warps do with 64 queries, and the shared memory that the groups of a block read.
#pragma once

#include "attention/logits.cuh"
#include "gemm/staging.cuh"
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
  char* shared;

  LATHE_DEVICE_MEMBER char* queries() const { return shared; }
  LATHE_DEVICE_MEMBER char* keys(int stage) const { return shared + Shape::kQueryBytes + stage * Shape::kStageBytes; }
  LATHE_DEVICE_MEMBER char* values(int stage) const { return keys(stage) + Shape::kKeyBytes; }
  LATHE_DEVICE_MEMBER char* turned(int stage) const { return values(stage) + Shape::kValueBytes; }
  LATHE_DEVICE_MEMBER uint64* queries_filled() const { return reinterpret_cast<uint64*>(keys(Shape::kStages)); }
  LATHE_DEVICE_MEMBER uint64* queries_empty() const { return queries_filled() + 1; }
  LATHE_DEVICE_MEMBER uint64* keys_filled(int stage) const { return queries_filled() + 2 + stage; }
  LATHE_DEVICE_MEMBER uint64* keys_empty(int stage) const { return keys_filled(stage) + Shape::kStages; }
  LATHE_DEVICE_MEMBER uint64* values_filled(int stage) const { return keys_filled(stage) + 2 * Shape::kStages; }
  LATHE_DEVICE_MEMBER uint64* values_empty(int stage) const { return keys_filled(stage) + 3 * Shape::kStages; }
  LATHE_DEVICE_MEMBER uint64* turn(int group) const { return keys_filled(0) + 4 * Shape::kStages + group; }
  LATHE_DEVICE_MEMBER uint64* turned_filled(int stage) const { return turn(Shape::kGroups) + stage; }
  LATHE_DEVICE_MEMBER uint64* turned_empty(int stage) const { return turned_filled(stage) + Shape::kStages; }
  // What products with weights read.
  LATHE_DEVICE_MEMBER char* factors(int stage) const { return Shape::kFloat8 ? turned(stage) : values(stage); }
  LATHE_DEVICE_MEMBER uint64* factors_filled(int stage) const {
    return Shape::kFloat8 ? turned_filled(stage) : values_filled(stage);
  }
  LATHE_DEVICE_MEMBER uint64* factors_empty(int stage) const {
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
LATHE_DEVICE void release(uint64* empty) {
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

// Groups begin their products in turns.
template <class Shape>
struct Turns {
  int group;
  uint32 parity;
  LATHE_DEVICE_MEMBER explicit Turns(int g) : group(g), parity(g == 0 ? 1 : 0) {}
  LATHE_DEVICE_MEMBER void wait(const Memory<Shape>& memory) {
    if constexpr (Shape::kGroups > 1) {
      phase_barrier_wait(memory.turn(group), parity);
      parity ^= 1;
    }
  }
  LATHE_DEVICE_MEMBER void pass(const Memory<Shape>& memory) const {
    if constexpr (Shape::kGroups > 1) release(memory.turn(group + 1 < Shape::kGroups ? group + 1 : 0));
  }
};

template <class Shape>
struct Group {
  using T = typename Shape::T;
  using Accumulator = float;
  static constexpr bool kFloat8 = Shape::kFloat8;
  static constexpr int kN = Shape::kSumColumns, kKeys = Shape::kKeys, kRowTiles = 1, kGroups = Shape::kGroups;
  static constexpr int kValueColumns = Shape::kValueColumns, kStep = Shape::kStep;
  LATHE_DEVICE_MEMBER static int warp_row() { return row_of_warp<kGroups>(); }

  Accumulator acc[1][kN / 8][4];  // sums of weighed values: of the rows lane / 4 and lane / 4 + 8 of a warp's 16
  // Of 8-bit floats, the sums of a tile of keys: matrix units keep about 14 bits (docs/decisions/0071). `kept` is what
  // makes those before fit.
  float part[kFloat8 ? kN / 8 : 1][4], kept[2];
  unsigned weights[kKeys / kStep][4];  // of a tile of keys
  RunningSoftmax rows[2];

  LATHE_DEVICE_MEMBER void clear() {
    gemm::clear_sums(acc);
    kept[0] = kept[1] = 1.0f;
    LATHE_UNROLL
    for (RunningSoftmax& row : rows) row = {-infinity(), 0.0f};
  }

  // Begins to multiply the group's queries by a tile of keys.
  LATHE_DEVICE_MEMBER void multiply_keys(float (&s)[kKeys / 8][4], const Memory<Shape>& memory, int stage) const {
    constexpr bool kAlongK = false, kKeep = true;
    const char *queries = memory.queries() + warp() / 4 * 64 * 128, *keys = memory.keys(stage);
    wgmma_fence();
    wgmma<kKeys, kAlongK, kAlongK, 0, 0, !kKeep>(s, queries, keys, T{});
    LATHE_UNROLL
    for (int k = 1; k < Shape::kSize / kStep; ++k) {
      const int panel = k / 4, at = k % 4 * 32;
      wgmma<kKeys, kAlongK, kAlongK, 0, 0, kKeep>(s, queries + panel * Shape::kQueries * 128 + at,
                                                  keys + panel * kKeys * 128 + at, T{});
    }
    wgmma_commit();
  }

  // Begins to add a tile's values by their weights.
  LATHE_DEVICE_MEMBER void multiply_values(const Memory<Shape>& memory, int stage) {
    constexpr bool kAcrossK = true, kKeep = true;
    const char* values = memory.factors(stage);
    wgmma_fence();
    if constexpr (kFloat8) {
      wgmma_registers<kN, !kAcrossK, 0, !kKeep>(part, weights[0], values, T{});
      LATHE_UNROLL
      for (int k = 1; k < kKeys / kStep; ++k)
        wgmma_registers<kN, !kAcrossK, 0, kKeep>(part, weights[k], values + k * 32, T{});
    } else {
      LATHE_UNROLL
      for (int k = 0; k < kKeys / kStep; ++k)
        wgmma_registers<kN, kAcrossK, kKeys * 128>(acc[0], weights[k], values + k * 16 * 128, T{});
    }
    wgmma_commit();
  }

  // Once the products have been waited for: `factors` make them fit the next tile's.
  LATHE_DEVICE_MEMBER void take_products(const float (&factors)[2]) {
    if constexpr (kFloat8) {
      pin_sums(part);
      LATHE_UNROLL
      for (int n = 0; n < kN / 8; ++n) LATHE_UNROLL
      for (int e = 0; e < 4; ++e) acc[0][n][e] = fmaf(acc[0][n][e], kept[e / 2], part[n][e]);
      kept[0] = factors[0], kept[1] = factors[1];
    } else {
      pin_sums(acc[0]);
      scale(factors);
    }
  }

  // Products to weights, relative to the largest logit by now; `factors` make what was summed before fit. `query`: the
  // block's first; `key`: the tile's. is_shown: whether the mask shows all of its keys, if logits are linear.
  template <bool kLinear, class Logits>
  LATHE_DEVICE_MEMBER void weigh(float (&s)[kKeys / 8][4], float (&factors)[2], const Logits& logits, long batch,
                                 long head, long query, long key, bool is_shown) {
    query += warp() * 16;
    if constexpr (kLinear) {
      if constexpr (Logits::kAdds) {
        constexpr bool kInside = true;
        if (query + 16 <= logits.seen.queries && key + kKeys <= logits.seen.keys)
          add_numbers<kInside>(s, logits, {batch, head, query, key});
        else
          add_numbers<!kInside>(s, logits, {batch, head, query, key});
      }
      if (!logits.seen.sees_all(query, 16, key, kKeys)) hide(s, logits, query, key);
      if (!is_shown) hide_by_mask(s, logits, batch, head, key);
      exponentiate(logits, s, factors, Logits::kAdds ? 1.0f : logits.scale * kLog2E);
    } else {
      transform(s, logits, batch, head, query, key);
      exponentiate(logits, s, factors, 1.0f);
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

  // Logits are s * unit. Each row has two chains of maxima, and of sums, so that neither waits for itself.
  template <class Logits>
  LATHE_DEVICE_MEMBER void exponentiate(const Logits& logits, float (&s)[kKeys / 8][4], float (&factors)[2],
                                        float unit) {
    LATHE_UNROLL
    for (int half = 0; half < 2; ++half) {
      float even = s[0][2 * half], odd = s[0][2 * half + 1];
      LATHE_UNROLL
      for (int n = 1; n < kKeys / 8; ++n) even = fmaxf(even, s[n][2 * half]), odd = fmaxf(odd, s[n][2 * half + 1]);
      float largest = fmaxf(even, odd);
      largest = fmaxf(largest, shuffle_xor(largest, 1));
      largest = fmaxf(largest, shuffle_xor(largest, 2));
      RunningSoftmax& row = rows[half];
      factors[half] = row.raise(logits.reference(largest * unit));
      const float base = row.base();
      float sums[2] = {0.0f, 0.0f};
      LATHE_UNROLL
      for (int n = 0; n < kKeys / 8; ++n) LATHE_UNROLL
      for (int e = 0; e < 2; ++e) {
        float& weight = s[n][2 * half + e];
        weight = exp2_fast(fmaf(weight, unit, -base));
        if constexpr (kFloat8) continue;  // rounded as they are packed, and summed up by the matrix units
        weight = logits.rounded(weight);
        sums[e] += weight;
      }
      row.sum += sums[0] + sums[1];
    }
  }

  LATHE_DEVICE_MEMBER void scale(const float (&factors)[2]) {
    LATHE_UNROLL
    for (int n = 0; n < kN / 8; ++n) LATHE_UNROLL
    for (int e = 0; e < 4; ++e) acc[0][n][e] *= factors[e / 2];
  }

  // As the left operand of a product; those of the tile before have been used.
  LATHE_DEVICE_MEMBER void keep_weights(const float (&s)[kKeys / 8][4]) {
    LATHE_UNROLL
    for (int k = 0; k < kKeys / kStep; ++k) {
      if constexpr (kFloat8) {
        LATHE_UNROLL
        for (int e = 0; e < 4; ++e) {
          const float(&even)[4] = s[4 * k + e / 2 * 2], (&odd)[4] = s[4 * k + e / 2 * 2 + 1];
          weights[k][e] = pack_e4m3(even[e % 2 * 2], even[e % 2 * 2 + 1], odd[e % 2 * 2], odd[e % 2 * 2 + 1]);
        }
        continue;
      } else {
        weights[k][0] = pack_floats<T>(s[2 * k][0], s[2 * k][1]);
        weights[k][1] = pack_floats<T>(s[2 * k][2], s[2 * k][3]);
        weights[k][2] = pack_floats<T>(s[2 * k + 1][0], s[2 * k + 1][1]);
        weights[k][3] = pack_floats<T>(s[2 * k + 1][2], s[2 * k + 1][3]);
      }
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
