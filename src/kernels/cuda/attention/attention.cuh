// SPDX-License-Identifier: Apache-2.0
// Attention on tensor cores, keys in tiles with a running softmax. Each warp has 16 queries; Warps of them share the
// tiles of keys and values, of which the next pair is copied while one is worked on. D and DV are the sizes of keys and
// values, rounded up to multiples of 16.
#pragma once

#include "attention/logits.cuh"
#include "attention/tiles.cuh"

template <class T>
LATHE_DEVICE unsigned pack_pair(float low, float high) {
  return from_float<T>(low).bits | static_cast<unsigned>(from_float<T>(high).bits) << 16;
}

template <class T, int D, int DV, int Warps, int Keys>
struct AttentionTiles {
  static constexpr int kThreads = 32 * Warps, kQueries = 16 * Warps;
  static constexpr bool kKeepsQueries = D <= 128;  // as fragments in registers
  using QueryTile = Tile<T, kQueries, D>;
  using KeyTile = Tile<T, Keys, D>;
  using ValueTile = Tile<T, Keys, DV>;

  unsigned queries[kKeepsQueries ? D / 16 : 1][4];
  float out[DV / 8][4];
  RunningSoftmax rows[2];  // of the fragments' rows lane / 4 and lane / 4 + 8

  LATHE_DEVICE_MEMBER static QueryTile query_tile() { return {reinterpret_cast<T*>(dynamic_shared())}; }
  LATHE_DEVICE_MEMBER static KeyTile key_tile(int stage) {
    return {query_tile().data + QueryTile::kElements + stage * (KeyTile::kElements + ValueTile::kElements)};
  }
  LATHE_DEVICE_MEMBER static ValueTile value_tile(int stage) { return {key_tile(stage).data + KeyTile::kElements}; }

  LATHE_DEVICE_MEMBER void clear() {
    LATHE_UNROLL
    for (int i = 0; i < DV / 8; ++i) LATHE_UNROLL
    for (int e = 0; e < 4; ++e) out[i][e] = 0.0f;
    LATHE_UNROLL
    for (RunningSoftmax& row : rows) row = {-infinity(), 0.0f};
  }

  LATHE_DEVICE_MEMBER void load_queries() {
    if constexpr (kKeepsQueries) {
      LATHE_UNROLL
      for (int k = 0; k < D / 16; ++k) query_tile().load_a(queries[k], warp() * 16, k * 16);
    }
  }

  // Products of the warp's queries with a tile of keys.
  LATHE_DEVICE_MEMBER void multiply_keys(const KeyTile& keys, float (&s)[Keys / 8][4]) const {
    LATHE_UNROLL
    for (int n = 0; n < Keys / 8; ++n) LATHE_UNROLL
    for (int e = 0; e < 4; ++e) s[n][e] = 0.0f;
    LATHE_UNROLL
    for (int k = 0; k < D / 16; ++k) {
      unsigned a[4];
      if constexpr (kKeepsQueries) {
        LATHE_UNROLL
        for (int e = 0; e < 4; ++e) a[e] = queries[k][e];
      } else {
        query_tile().load_a(a, warp() * 16, k * 16);
      }
      LATHE_UNROLL
      for (int n = 0; n < Keys / 16; ++n) {
        unsigned b0[2], b1[2];
        keys.load_b(b0, b1, n * 16, k * 16);
        mma_m16n8k16(s[2 * n], a, b0, T{});
        mma_m16n8k16(s[2 * n + 1], a, b1, T{});
      }
    }
  }

  // Products to logits. `first`: the tile's first key; c: batch and head.
  template <class Logits>
  LATHE_DEVICE_MEMBER void transform(const Logits& logits, float (&s)[Keys / 8][4], long (&c)[4], long query,
                                     long first) const {
    if (logits.is_plain(query, first + Keys)) {
      LATHE_UNROLL
      for (int n = 0; n < Keys / 8; ++n) LATHE_UNROLL
      for (int e = 0; e < 4; ++e) s[n][e] = logits.plain(s[n][e]);
      return;
    }
    LATHE_UNROLL
    for (int n = 0; n < Keys / 8; ++n) {
      LATHE_UNROLL
      for (int half = 0; half < 2; ++half) {
        c[2] = query + lane() / 4 + half * 8;
        c[3] = first + n * 8 + lane() % 4 * 2;
        float pair[2] = {s[n][2 * half], s[n][2 * half + 1]};
        logits.transform(pair, c);
        s[n][2 * half] = pair[0], s[n][2 * half + 1] = pair[1];
      }
    }
  }

  // Logits to weights, relative to the largest so far; what was summed before is made to fit.
  LATHE_DEVICE_MEMBER void exponentiate(float (&s)[Keys / 8][4]) {
    LATHE_UNROLL
    for (int half = 0; half < 2; ++half) {
      float largest = s[0][2 * half];
      LATHE_UNROLL
      for (int n = 0; n < Keys / 8; ++n) largest = fmaxf(largest, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
      largest = fmaxf(largest, shuffle_xor(largest, 1));
      largest = fmaxf(largest, shuffle_xor(largest, 2));
      RunningSoftmax& row = rows[half];
      const float factor = row.raise(largest), base = row.base();
      LATHE_UNROLL
      for (int n = 0; n < Keys / 8; ++n) {
        LATHE_UNROLL
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          s[n][e] = exp2_fast(s[n][e] - base);
          row.sum += s[n][e];
        }
      }
      LATHE_UNROLL
      for (int n = 0; n < DV / 8; ++n) out[n][2 * half] *= factor, out[n][2 * half + 1] *= factor;
    }
  }

  LATHE_DEVICE_MEMBER void multiply_values(const ValueTile& values, const float (&s)[Keys / 8][4]) {
    LATHE_UNROLL
    for (int k = 0; k < Keys / 16; ++k) {
      const unsigned a[4] = {pack_pair<T>(s[2 * k][0], s[2 * k][1]), pack_pair<T>(s[2 * k][2], s[2 * k][3]),
                             pack_pair<T>(s[2 * k + 1][0], s[2 * k + 1][1]),
                             pack_pair<T>(s[2 * k + 1][2], s[2 * k + 1][3])};
      LATHE_UNROLL
      for (int n = 0; n < DV / 16; ++n) {
        unsigned b0[2], b1[2];
        values.load_b_across(b0, b1, k * 16, n * 16);
        mma_m16n8k16(out[2 * n], a, b0, T{});
        mma_m16n8k16(out[2 * n + 1], a, b1, T{});
      }
    }
  }

  template <class Out, class Logits, class Fusion>
  LATHE_DEVICE_MEMBER void write(const Out& y, const Logits& logits, const Fusion& fusion, long (&c)[4], long query) {
    LATHE_UNROLL
    for (int half = 0; half < 2; ++half) {
      float sum = rows[half].sum;
      sum += shuffle_xor(sum, 1);
      sum += shuffle_xor(sum, 2);
      const float factor = 1.0f / sum;
      const bool is_zero = logits.is_zero(sum);
      c[2] = query + lane() / 4 + half * 8;
      if (c[2] >= y.dim(2)) continue;
      LATHE_UNROLL
      for (int n = 0; n < DV / 8; ++n) {
        c[3] = n * 8 + lane() % 4 * 2;
        if (c[3] >= y.dim(3)) continue;
        float pair[2] = {is_zero ? 0.0f : out[n][2 * half] * factor, is_zero ? 0.0f : out[n][2 * half + 1] * factor};
        fusion.template apply<3, 2>(pair, c, 2);
        store<3, 2>(y, c, pair, 2);
      }
    }
  }
};

// Grid (tiles of queries, batch * heads).
template <int D, int DV, int Warps, int Keys, class Q, class K, class V, class Out, class Logits, class Fusion>
LATHE_DEVICE void attend(const Q& q, const K& k, const V& v, const Out& y, const Logits& logits, const Fusion& fusion) {
  using Tiles = AttentionTiles<typename Q::Type, D, DV, Warps, Keys>;
  constexpr int kThreads = Tiles::kThreads;
  const long heads = q.dim(1), first_query = static_cast<long>(block_x()) * Tiles::kQueries;
  const long query = first_query + warp() * 16, last_query = first_query + Tiles::kQueries - 1;
  long c[4] = {block_y() / heads, block_y() % heads, 0, 0};
  const long kv[4] = {c[0], c[1] / (heads / k.dim(1)), 0, 0};
  const long end = logits.end_of_keys(last_query);
  const int tiles = end <= 0 ? 0 : static_cast<int>((end + Keys - 1) / Keys);
  dependency_wait();
  Tiles work;
  work.clear();
  Tiles::query_tile().template copy_from<kThreads>(q, c, first_query);
  if (tiles > 0) {
    Tiles::key_tile(0).template copy_from<kThreads>(k, kv, 0);
    Tiles::value_tile(0).template copy_from<kThreads>(v, kv, 0);
  }
  copy_async_commit();
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) {
      Tiles::key_tile((tile + 1) % 2).template copy_from<kThreads>(k, kv, static_cast<long>(tile + 1) * Keys);
      Tiles::value_tile((tile + 1) % 2).template copy_from<kThreads>(v, kv, static_cast<long>(tile + 1) * Keys);
    }
    copy_async_commit();
    copy_async_wait<1>();
    if (tile == 0) Tiles::query_tile().template compute<kThreads>(q, c, first_query);
    Tiles::key_tile(tile % 2).template compute<kThreads>(k, kv, static_cast<long>(tile) * Keys);
    Tiles::value_tile(tile % 2).template compute<kThreads>(v, kv, static_cast<long>(tile) * Keys);
    barrier();
    if (tile == 0) work.load_queries();
    float s[Keys / 8][4];
    work.multiply_keys(Tiles::key_tile(tile % 2), s);
    work.transform(logits, s, c, query, static_cast<long>(tile) * Keys);
    work.exponentiate(s);
    work.multiply_values(Tiles::value_tile(tile % 2), s);
    barrier();
  }
  copy_async_wait<0>();
  work.write(y, logits, fusion, c, query);
}
