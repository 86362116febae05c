// SPDX-License-Identifier: Apache-2.0
// Attention on tensor cores, keys in tiles with a running softmax. Each warp has 16 queries; Warps of them share the
// tiles of keys and values, of which the next pair is copied while one is worked on. D and DV are the sizes of keys and
// values, rounded up to multiples of 16, keys of 8-bit floats of 32.
#pragma once

#include "attention/logits.cuh"
#include "attention/tiles.cuh"

// The k-th fragment of operand a of weights that a lane has as results of products: of each eight keys, two neighbours
// of two rows. Of f32, the neighbours 2k and 2k + 1 stand for k and k + 4, so that no lane needs those of another; of
// 8-bit floats, those of 16 keys stand for four neighbours.
template <class T, int Blocks>
LATHE_DEVICE void weights_of(unsigned (&a)[4], const float (&s)[Blocks][4], int k) {
  if constexpr (is_same<T, float>) {
    a[0] = tf32_bits(s[k][0]), a[1] = tf32_bits(s[k][2]);
    a[2] = tf32_bits(s[k][1]), a[3] = tf32_bits(s[k][3]);
  } else if constexpr (is_float8<T>) {
    LATHE_UNROLL
    for (int e = 0; e < 4; ++e) {
      const float(&even)[4] = s[4 * k + e / 2 * 2], (&odd)[4] = s[4 * k + e / 2 * 2 + 1];
      a[e] = pack_float8<T>(even[e % 2 * 2], even[e % 2 * 2 + 1], odd[e % 2 * 2], odd[e % 2 * 2 + 1]);
    }
  } else {
    a[0] = pack_floats<T>(s[2 * k][0], s[2 * k][1]), a[1] = pack_floats<T>(s[2 * k][2], s[2 * k][3]);
    a[2] = pack_floats<T>(s[2 * k + 1][0], s[2 * k + 1][1]), a[3] = pack_floats<T>(s[2 * k + 1][2], s[2 * k + 1][3]);
  }
}

template <class T, int D, int DV, int Warps, int Keys>
struct AttentionTiles {
  static constexpr int kThreads = 32 * Warps, kQueries = 16 * Warps;
  static constexpr bool kKeepsQueries = D * static_cast<int>(sizeof(T)) <= 256;  // as fragments in registers
  using QueryTile = Tile<T, kQueries, D>;
  using KeyTile = Tile<T, Keys, D>;
  using ValueTile = Tile<T, Keys, DV>;

  static constexpr int kDepth = KeyTile::kDepth;
  // Weights of 8-bit floats are rounded as they are packed: the matrix units sum them up, as values of 1 would be. Of
  // each 16 columns of values, the even ones are eight of the sums' columns, and the odd ones the next.
  static constexpr bool kFloat8 = is_float8<T>;
  static constexpr int kPanel = 128;  // elements of K
  static constexpr int kBlocks = DV / 8 + (kFloat8 ? 1 : 0);

  unsigned queries[kKeepsQueries ? D / kDepth : 1][4];
  float out[kBlocks][4];
  RunningSoftmax rows[2];  // of the fragments' rows lane / 4 and lane / 4 + 8

  LATHE_DEVICE_MEMBER static QueryTile query_tile() { return {reinterpret_cast<T*>(dynamic_shared())}; }
  LATHE_DEVICE_MEMBER static KeyTile key_tile(int stage) {
    return {query_tile().data + QueryTile::kElements + stage * (KeyTile::kElements + ValueTile::kElements)};
  }
  LATHE_DEVICE_MEMBER static ValueTile value_tile(int stage) { return {key_tile(stage).data + KeyTile::kElements}; }

  LATHE_DEVICE_MEMBER void clear() {
    LATHE_UNROLL
    for (int i = 0; i < kBlocks; ++i) LATHE_UNROLL
    for (int e = 0; e < 4; ++e) out[i][e] = 0.0f;
    LATHE_UNROLL
    for (RunningSoftmax& row : rows) row = {-infinity(), 0.0f};
  }

  LATHE_DEVICE_MEMBER void load_queries() {
    if constexpr (kKeepsQueries) {
      LATHE_UNROLL
      for (int k = 0; k < D / kDepth; ++k) query_tile().load_a(queries[k], warp() * 16, k * kDepth);
    }
  }

  // Products of the warp's queries with a tile of keys. Matrix units keep about 14 bits of sums of 8-bit floats: they
  // add up those of 128 elements at most, and these are added in f32 (docs/decisions/0071).
  LATHE_DEVICE_MEMBER void multiply_keys(const KeyTile& keys, float (&s)[Keys / 8][4]) const {
    LATHE_UNROLL
    for (int n = 0; n < Keys / 8; ++n) LATHE_UNROLL
    for (int e = 0; e < 4; ++e) s[n][e] = 0.0f;
    if constexpr (kFloat8 && D > kPanel) {
      float part[Keys / 8][4] = {};
      multiply_steps<kPanel / kDepth, D / kDepth>(keys, part);
      multiply_steps<0, kPanel / kDepth>(keys, s);
      LATHE_UNROLL
      for (int n = 0; n < Keys / 8; ++n) add(s[n], part[n]);
    } else {
      multiply_steps<0, D / kDepth>(keys, s);
    }
  }
  template <int First, int End>
  LATHE_DEVICE_MEMBER void multiply_steps(const KeyTile& keys, float (&s)[Keys / 8][4]) const {
    LATHE_UNROLL
    for (int k = First; k < End; ++k) {
      unsigned a[4];
      if constexpr (kKeepsQueries) {
        LATHE_UNROLL
        for (int e = 0; e < 4; ++e) a[e] = queries[k][e];
      } else {
        query_tile().load_a(a, warp() * 16, k * kDepth);
      }
      LATHE_UNROLL
      for (int n = 0; n < Keys / 16; ++n) {
        unsigned b0[2], b1[2];
        keys.load_b(b0, b1, n * 16, k * kDepth);
        multiply<T>(s[2 * n], a, b0);
        multiply<T>(s[2 * n + 1], a, b1);
      }
    }
  }

  // Products to logits. `first`: the tile's first key; c: batch and head.
  template <class Logits>
  LATHE_DEVICE_MEMBER void transform(const Logits& logits, float (&s)[Keys / 8][4], long (&c)[4], long query,
                                     long first) const {
    if (logits.is_plain(query, 16, first, Keys)) {
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
  template <class Logits>
  LATHE_DEVICE_MEMBER void exponentiate(const Logits& logits, float (&s)[Keys / 8][4]) {
    LATHE_UNROLL
    for (int half = 0; half < 2; ++half) {
      float largest = s[0][2 * half];
      LATHE_UNROLL
      for (int n = 0; n < Keys / 8; ++n) largest = fmaxf(largest, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
      largest = fmaxf(largest, shuffle_xor(largest, 1));
      largest = fmaxf(largest, shuffle_xor(largest, 2));
      RunningSoftmax& row = rows[half];
      const float factor = row.raise(logits.reference(largest)), base = row.base();
      LATHE_UNROLL
      for (int n = 0; n < Keys / 8; ++n) {
        LATHE_UNROLL
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          s[n][e] = exp2_fast(s[n][e] - base);
          if constexpr (kFloat8) continue;
          s[n][e] = logits.rounded(s[n][e]);
          row.sum += s[n][e];
        }
      }
      LATHE_UNROLL
      for (int n = 0; n < kBlocks; ++n) out[n][2 * half] *= factor, out[n][2 * half + 1] *= factor;
    }
  }

  LATHE_DEVICE_MEMBER static void add(float (&sums)[4], const float (&part)[4]) {
    LATHE_UNROLL
    for (int e = 0; e < 4; ++e) sums[e] += part[e];
  }

  LATHE_DEVICE_MEMBER void multiply_values(const ValueTile& values, const float (&s)[Keys / 8][4]) {
    if constexpr (kFloat8) return multiply_float8_values(values, s);
    LATHE_UNROLL
    for (int k = 0; k < Keys / kDepth; ++k) {
      unsigned a[4];
      weights_of<T>(a, s, k);
      LATHE_UNROLL
      for (int n = 0; n < DV / 16; ++n) {
        unsigned b0[2], b1[2];
        values.load_b_across(b0, b1, k * kDepth, n * 16);
        multiply<T>(out[2 * n], a, b0);
        multiply<T>(out[2 * n + 1], a, b1);
      }
    }
  }
  // Of a tile, 128 keys at most, the sums are apart.
  LATHE_DEVICE_MEMBER void multiply_float8_values(const ValueTile& values, const float (&s)[Keys / 8][4]) {
    constexpr int kSteps = Keys / kDepth;
    constexpr unsigned kOnes[2] = {0x38383838u, 0x38383838u};
    unsigned a[kSteps][4];
    float sums[4] = {};
    LATHE_UNROLL
    for (int k = 0; k < kSteps; ++k) {
      weights_of<T>(a[k], s, k);
      multiply<T>(sums, a[k], kOnes);
    }
    add(out[DV / 8], sums);
    LATHE_UNROLL
    for (int n = 0; n < DV / 16; ++n) {
      float even[4] = {}, odd[4] = {};
      LATHE_UNROLL
      for (int k = 0; k < kSteps; ++k) {
        unsigned b0[2], b1[2];
        values.load_b_across(b0, b1, k * kDepth, n * 16);
        multiply<T>(even, a[k], b0);
        multiply<T>(odd, a[k], b1);
      }
      add(out[2 * n], even);
      add(out[2 * n + 1], odd);
    }
  }

  // Rows' sums of weights, of all lanes that share them.
  LATHE_DEVICE_MEMBER void add_up() {
    LATHE_UNROLL
    for (int half = 0; half < 2; ++half) {
      RunningSoftmax& row = rows[half];
      if constexpr (kFloat8) {
        row.sum = out[DV / 8][2 * half];
        continue;
      }
      row.sum += shuffle_xor(row.sum, 1);
      row.sum += shuffle_xor(row.sum, 2);
    }
  }

  // Of a cluster's blocks, each of which has weighed keys of its own: their sums relative to the largest logit of all.
  // Each block gets those of the columns that owns() says. What is in shared memory is overwritten.
  template <int Splits>
  LATHE_DEVICE_MEMBER void merge() {
    constexpr int kValues = DV / 8 * 4 + 4;  // of a lane
    float* own = reinterpret_cast<float*>(dynamic_shared()) + warp() * kValues * 32 + lane();
    LATHE_UNROLL
    for (int half = 0; half < 2; ++half) {
      own[2 * half * 32] = rows[half].largest;
      own[(2 * half + 1) * 32] = rows[half].sum;
    }
    LATHE_UNROLL
    for (int n = 0; n < DV / 8; ++n) LATHE_UNROLL
    for (int e = 0; e < 4; ++e) own[(4 + 4 * n + e) * 32] = out[n][e];
    cluster_arrive();
    cluster_wait();
    float factors[2][Splits];
    LATHE_UNROLL
    for (int half = 0; half < 2; ++half) {
      RunningSoftmax& row = rows[half];
      LATHE_UNROLL
      for (int i = 0; i < Splits; ++i) row.largest = fmaxf(row.largest, cluster_peer(own, i)[2 * half * 32]);
      row.sum = 0.0f;
      LATHE_UNROLL
      for (int i = 0; i < Splits; ++i) {
        factors[half][i] = exp2_fast(cluster_peer(own, i)[2 * half * 32] - row.base());
        row.sum += factors[half][i] * cluster_peer(own, i)[(2 * half + 1) * 32];
      }
    }
    LATHE_UNROLL
    for (int n = 0; n < DV / 8; ++n) {
      if (!owns<Splits>(n)) continue;
      LATHE_UNROLL
      for (int e = 0; e < 4; ++e) {
        out[n][e] = 0.0f;
        LATHE_UNROLL
        for (int i = 0; i < Splits; ++i) out[n][e] += factors[e / 2][i] * cluster_peer(own, i)[(4 + 4 * n + e) * 32];
      }
    }
    cluster_arrive();
    cluster_wait();  // until the others have read what lies here
  }

  // Whether the block writes these eight columns, of 8-bit floats also those beside them.
  template <int Splits>
  LATHE_DEVICE_MEMBER static bool owns(int n) {
    return Splits == 1 || n / (kFloat8 ? 2 : 1) % Splits == cluster_rank();
  }

  template <int Splits, class Out, class V, class Logits, class Fusion>
  LATHE_DEVICE_MEMBER void write(const Out& y, const V& v, const long (&kv)[4], const Logits& logits,
                                 const Fusion& fusion, long (&c)[4], long query) {
    LATHE_UNROLL
    for (int half = 0; half < 2; ++half) {
      const ToMeans mean = logits.to_means(rows[half], c[1]);
      c[2] = query + lane() / 4 + half * 8;
      if (c[2] >= y.dim(2)) continue;
      constexpr int kWidth = kFloat8 ? 4 : 2;
      LATHE_UNROLL
      for (int n = 0; n < DV / 8; n += kWidth / 2) {
        c[3] = n * 8 + lane() % 4 * kWidth;
        if (!owns<Splits>(n) || c[3] >= y.dim(3)) continue;
        float means[kWidth];
        LATHE_UNROLL
        for (int i = 0; i < kWidth; ++i)
          means[i] = mean(kFloat8 ? out[n + i % 2][2 * half + i / 2] : out[n][2 * half + i]);
        if constexpr (Logits::kMeanForNone)
          if (mean.is_of_all) mean_of_values(means, v, kv, c[3]);
        fusion.template apply<3, kWidth>(means, c, kWidth);
        store<3, kWidth>(y, c, means, kWidth);
      }
    }
  }
};

// Grid (batch * heads * tiles of queries * Splits). Splits: the keys of a tile's queries are shared out among a
// cluster's blocks, which are neighbours, so that few queries of many keys keep all multiprocessors busy.
template <int D, int DV, int Warps, int Keys, int Splits, class Q, class K, class V, class Out, class Logits,
          class Fusion>
LATHE_DEVICE void attend(const Q& q, const K& k, const V& v, const Out& y, const Logits& logits, const Fusion& fusion) {
  using Tiles = AttentionTiles<typename Q::Type, D, DV, Warps, Keys>;
  constexpr int kThreads = Tiles::kThreads;
  const long heads = q.dim(1);
  const HeadOfBlock at(heads, (q.dim(2) + Tiles::kQueries - 1) / Tiles::kQueries * Splits);
  const long first_query = static_cast<long>(at.block / Splits) * Tiles::kQueries;
  const long query = first_query + warp() * 16, last_query = first_query + Tiles::kQueries - 1;
  long c[4] = {at.batch, at.head, 0, 0};
  const long kv[4] = {c[0], c[1] / (heads / k.dim(1)), 0, 0};
  const long end = logits.seen.end_of(last_query);
  const int all = end <= 0 ? 0 : static_cast<int>((end + Keys - 1) / Keys);
  const int none = static_cast<int>(logits.seen.first_of(first_query) / Keys);  // of the first tiles is seen
  const int share = (all - none + Splits - 1) / Splits, begin = none + (Splits == 1 ? 0 : at.block % Splits * share);
  const int tiles = begin + share < all ? begin + share : all;
  dependency_wait();
  Tiles work;
  work.clear();
  Tiles::query_tile().template copy_from<kThreads>(q, c, first_query);
  if (begin < tiles) {
    Tiles::key_tile(0).template copy_from<kThreads>(k, kv, static_cast<long>(begin) * Keys);
    Tiles::value_tile(0).template copy_from<kThreads>(v, kv, static_cast<long>(begin) * Keys);
  }
  copy_async_commit();
  for (int tile = begin; tile < tiles; ++tile) {
    const int stage = (tile - begin) % 2;
    if (tile + 1 < tiles) {
      Tiles::key_tile(1 - stage).template copy_from<kThreads>(k, kv, static_cast<long>(tile + 1) * Keys);
      Tiles::value_tile(1 - stage).template copy_from<kThreads>(v, kv, static_cast<long>(tile + 1) * Keys);
    }
    copy_async_commit();
    copy_async_wait<1>();
    if (tile == begin) Tiles::query_tile().template compute<kThreads>(q, c, first_query);
    Tiles::key_tile(stage).template compute<kThreads>(k, kv, static_cast<long>(tile) * Keys);
    Tiles::value_tile(stage).template compute<kThreads>(v, kv, static_cast<long>(tile) * Keys);
    barrier();
    if (tile == begin) work.load_queries();
    float s[Keys / 8][4];
    work.multiply_keys(Tiles::key_tile(stage), s);
    work.transform(logits, s, c, query, static_cast<long>(tile) * Keys);
    work.exponentiate(logits, s);
    work.multiply_values(Tiles::value_tile(stage), s);
    barrier();
  }
  copy_async_wait<0>();
  work.add_up();
  if constexpr (Splits > 1) {
    barrier();
    work.template merge<Splits>();
  }
  work.template write<Splits>(y, v, kv, logits, fusion, c, query);
}
