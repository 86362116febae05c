// SPDX-License-Identifier: Apache-2.0
// Attention of few queries to many keys, as of a decoder's next token, at the speed of memory. The queries of all heads
// that share a head of keys are rows of one tile, so that keys and values are read once. A warp takes 16 keys at a
// time from memory to registers, where they are operands of products as they come, and waits for no other warp before
// the end. Keys that no row sees are not read, but for the first ones, which are on their way with what tells that. D
// and DV: the sizes of keys and values, rounded up to multiples of 64 and 128 bytes.
#pragma once

#include "attention/exchange.cuh"
#include "attention/logits.cuh"
#include "attention/words.cuh"

namespace decode {

// Keys are passed over where no row of the tile sees them: by booleans, or where the mask, of numbers, does not exceed
// `low`. They weigh nothing in a row whose largest logit exceeds `floor`. A tile with another row is computed again
// with all keys, unless hidden ones have -inf, which weighs nothing beside anything.
struct Skipping {
  float low, floor;
};

// Rows of a tile are numbered query by query. Those beyond the last stand for it and are not written.
struct RowSpace {
  long batch, shared_head, group, rows, first;

  LATHE_DEVICE_MEMBER void place(int row, long (&c)[4]) const {
    const long at = first + row < rows ? first + row : rows - 1;
    c[0] = batch, c[1] = shared_head * group + at % group, c[2] = at / group;
  }
};

// What a warp has of a tile of rows, in registers. Rows are the left operand of products with keys, 16 of them, and the
// right operand of products with values, eight of them: RowTiles tiles of eight rows are kPairs left operands, of which
// each has kHalves halves that are not zeros.
template <class T, int D, int DV, int RowTiles>
struct WarpTile : WarpRows<T, D, DV> {
  using Reads = WarpRows<T, D, DV>;
  using Reads::kVector, Reads::kChunks, Reads::kValueChunks, Reads::kBoth;
  using Reads::load, Reads::load_values, Reads::take_new_keys, Reads::take_new_values, Reads::hide_values;
  using typename Reads::Loaded, typename Reads::NewRow;
  static constexpr int kRows = 8 * RowTiles, kPairs = (RowTiles + 1) / 2, kHalves = RowTiles == 1 ? 1 : 2;
  // A chunk of a value has kBlocks blocks of 16 columns. Weights of 16 keys are right operands of kParts products.
  static constexpr int kBlocks = kVector / 2, kParts = 8 / kVector;

  unsigned queries[kPairs][2 * kChunks][2 * kHalves];
  float out[RowTiles][kBlocks * kValueChunks]
           [4];                   // of values transposed by weights: two rows of kVector columns in each chunk
  RunningSoftmax rows[RowTiles];  // of the rows lane / 4

  LATHE_DEVICE_MEMBER void clear() {
    LATHE_UNROLL
    for (int r = 0; r < RowTiles; ++r) {
      rows[r] = {-infinity(), 0.0f};
      LATHE_UNROLL
      for (int i = 0; i < kBlocks * kValueChunks; ++i) LATHE_UNROLL
      for (int e = 0; e < 4; ++e) out[r][i][e] = 0.0f;
    }
  }

  // Within 64 bytes of a row a lane has 16, as it has of keys: any order of them gives the same products.
  template <class Q>
  LATHE_DEVICE_MEMBER void load_queries(const Q& q, const RowSpace& space) {
    LATHE_UNROLL
    for (int r = 0; r < RowTiles; ++r) {
      long c[4];
      space.place(8 * r + lane() / 4, c);
      LATHE_UNROLL
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        c[3] = (chunk * 4 + lane() % 4) * kVector;
        Vec<uint32, 4> words = {};
        if (c[3] < q.dim(3)) words = load_words<T>(q, c);
        LATHE_UNROLL
        for (int i = 0; i < 4; ++i) queries[r / 2][2 * chunk + i / 2][i % 2 * kHalves + r % 2] = words.at[i];
      }
    }
  }

  // What is added to the scores of the lane's keys, first + {0, 1, 8, 9} + lane % 4 * 2, for its rows, or booleans of
  // the mask.
  template <class Logits>
  LATHE_DEVICE_MEMBER void read_added(float (&added)[RowTiles][2][2], const Logits& logits, const RowSpace& space,
                                      long first) const {
    LATHE_UNROLL
    for (int r = 0; r < RowTiles; ++r) {
      long c[4];
      space.place(8 * r + lane() / 4, c);
      LATHE_UNROLL
      for (int n = 0; n < 2; ++n) {
        c[3] = first + n * 8 + lane() % 4 * 2;
        logits.read_added(added[r][n], c);
      }
    }
  }

  // The same of booleans, as they are loaded; they become numbers later, so that nothing waits for them until then.
  struct Booleans {
    bool at[RowTiles][2][2];
  };
  template <class Logits>
  LATHE_DEVICE_MEMBER void load_mask(Booleans& booleans, const Logits& logits, const RowSpace& space,
                                     long first) const {
    if constexpr (Logits::kHasBooleans && !Logits::kHasDistances) {
      LATHE_UNROLL
      for (int r = 0; r < RowTiles; ++r) {
        long c[4];
        space.place(8 * r + lane() / 4, c);
        const long end = logits.seen.end_of(c[2]);
        LATHE_UNROLL
        for (int i = 0; i < 4; ++i) {
          c[3] = this->key_of(first, i);
          booleans.at[r][i / 2][i % 2] = false;
          if (c[3] < end) booleans.at[r][i / 2][i % 2] = logits.mask.data[offset_of(logits.mask, c)];
        }
      }
    }
  }
  template <class Logits>
  LATHE_DEVICE_MEMBER void first_added(float (&added)[RowTiles][2][2], const Booleans& booleans, const Logits& logits,
                                       const RowSpace& space, long first) const {
    if constexpr (Logits::kHasBooleans && !Logits::kHasDistances) {
      LATHE_UNROLL
      for (int r = 0; r < RowTiles; ++r) LATHE_UNROLL
      for (int i = 0; i < 4; ++i) added[r][i / 2][i % 2] = booleans.at[r][i / 2][i % 2] ? 1.0f : 0.0f;
    } else {
      read_added(added, logits, space, first);
    }
  }

  // A bit for each of the lane's keys: whether some row sees it.
  template <class Logits>
  LATHE_DEVICE_MEMBER unsigned seen_keys(const float (&added)[RowTiles][2][2], const Logits& logits,
                                         const RowSpace& space, long first, float low) const {
    unsigned seen = 0;
    LATHE_UNROLL
    for (int r = 0; r < RowTiles; ++r) {
      long c[4];
      space.place(8 * r + lane() / 4, c);
      LATHE_UNROLL
      for (int i = 0; i < 4; ++i) {
        const long key = first + i / 2 * 8 + lane() % 4 * 2 + i % 2;
        if (logits.seen.sees(c[2], key) && logits.is_seen(added[r][i / 2][i % 2], low)) seen |= 1u << i;
      }
    }
    LATHE_UNROLL
    for (int distance = 4; distance < 32; distance *= 2) seen |= shuffle_xor(seen, distance);
    return seen;
  }

  // s: of each eight keys and each pair of row tiles, two neighbours of two rows.
  LATHE_DEVICE_MEMBER void multiply_keys(float (&s)[kPairs][2][4], const Vec<uint32, 4> (&keys)[2][kChunks]) const {
    LATHE_UNROLL
    for (int p = 0; p < kPairs; ++p) LATHE_UNROLL
    for (int n = 0; n < 2; ++n) {
      LATHE_UNROLL
      for (int e = 0; e < 4; ++e) s[p][n][e] = 0.0f;
      LATHE_UNROLL
      for (int step = 0; step < 2 * kChunks; ++step) {
        const auto& own = queries[p][step];
        const unsigned a[4] = {own[0], kHalves == 2 ? own[1] : 0, own[kHalves],
                               kHalves == 2 ? own[2 * kHalves - 1] : 0};
        const Vec<uint32, 4>& words = keys[n][step / 2];
        const unsigned b[2] = {words.at[step % 2 * 2], words.at[step % 2 * 2 + 1]};
        multiply<T>(s[p][n], a, b);
      }
    }
  }

  // Products to weights, in the form of an operand; what was summed before is made to fit.
  template <class Logits>
  LATHE_DEVICE_MEMBER void weigh(unsigned (&weights)[kParts][2], float (&s)[2][4], const float (&added)[2][2], int r,
                                 const Logits& logits, const RowSpace& space, long first) {
    long c[4];
    space.place(8 * r + lane() / 4, c);
    float pairs[2][2];
    LATHE_UNROLL
    for (int n = 0; n < 2; ++n) {
      LATHE_UNROLL
      for (int e = 0; e < 2; ++e) pairs[n][e] = s[n][r % 2 * 2 + e];
      c[3] = first + n * 8 + lane() % 4 * 2;
      logits.apply(pairs[n], added[n], c);
    }
    float largest = fmaxf(fmaxf(pairs[0][0], pairs[0][1]), fmaxf(pairs[1][0], pairs[1][1]));
    largest = fmaxf(largest, shuffle_xor(largest, 1));
    largest = fmaxf(largest, shuffle_xor(largest, 2));
    const float factor = rows[r].raise(logits.reference(largest)), base = rows[r].base();
    LATHE_UNROLL
    for (int n = 0; n < 2; ++n) {
      LATHE_UNROLL
      for (float& x : pairs[n]) {
        x = logits.rounded(exp2_fast(x - base));
        rows[r].sum += x;
      }
      if constexpr (kParts == 1)
        weights[0][n] = pack_floats<T>(pairs[n][0], pairs[n][1]);
      else
        weights[n][0] = tf32_bits(pairs[n][0]), weights[n][1] = tf32_bits(pairs[n][1]);
    }
    LATHE_UNROLL
    for (int e = 0; e < 2; ++e) {
      const float own = shuffle_idx(factor, lane() % 4 * 8 + 4 * e);
      LATHE_UNROLL
      for (int i = 0; i < kBlocks * kValueChunks; ++i) out[r][i][e] *= own, out[r][i][e + 2] *= own;
    }
  }

  // The left operand of a part of the weights, of 16 columns. Of 16 bits, the lane's four keys in pairs; of f32, where
  // the neighbours 2k and 2k + 1 stand for k and k + 4, two of them.
  LATHE_DEVICE_MEMBER static void columns_of(unsigned (&a)[4], const Vec<uint32, 4> (&values)[4], int part, int block) {
    if constexpr (kParts == 1) {
      LATHE_UNROLL
      for (int i = 0; i < 4; i += 2) {
        const uint32 low = values[i].at[block], high = values[i + 1].at[block];
        a[i] = (low & 0xffffu) | high << 16, a[i + 1] = low >> 16 | (high & 0xffff0000u);
      }
    } else {
      LATHE_UNROLL
      for (int i = 0; i < 4; ++i) a[i] = values[2 * part + i / 2].at[2 * block + i % 2];
    }
  }
  LATHE_DEVICE_MEMBER void multiply_values(const Vec<uint32, 4> (&values)[kValueChunks][4],
                                           const unsigned (&weights)[RowTiles][kParts][2]) {
    LATHE_UNROLL
    for (int i = 0; i < kBlocks * kValueChunks; ++i) LATHE_UNROLL
    for (int part = 0; part < kParts; ++part) {
      unsigned a[4];
      columns_of(a, values[i / kBlocks], part, i % kBlocks);
      LATHE_UNROLL
      for (int r = 0; r < RowTiles; ++r) multiply<T>(out[r][i], a, weights[r][part]);
    }
  }

  // The keys from `first` on that are `step` apart, of which the first ones are loaded if kBoth. Where all are
  // wanted, none is passed over.
  template <class K, class V, class Logits>
  LATHE_DEVICE_MEMBER void run(Loaded& loaded, const Booleans& booleans, const K& k, const V& v, const NewRow& row,
                               const Logits& logits, const RowSpace& space, const long (&kv)[4], long first, long step,
                               long end, float low, bool all) {
    float added[RowTiles][2][2], next[RowTiles][2][2];
    if (first < end) first_added(added, booleans, logits, space, first);
    for (bool is_there = kBoth; first < end; first += step, is_there = false) {
      const unsigned seen = all ? 15u : seen_keys(added, logits, space, first, low);
      const bool is_wanted = ballot(seen != 0) != 0;
      if (first + step < end) read_added(next, logits, space, first + step);
      if (is_wanted) {
        float s[kPairs][2][4];
        unsigned weights[RowTiles][kParts][2];
        if (!is_there) load(loaded, k, v, kv, first, seen);
        take_new_keys(loaded.keys, k, kv, first, row);
        multiply_keys(s, loaded.keys);
        if constexpr (!kBoth) load_values(loaded.values, v, kv, first, seen);
        take_new_values(loaded.values, v, kv, first, row);
        hide_values(loaded.values, seen);
        LATHE_UNROLL
        for (int r = 0; r < RowTiles; ++r) weigh(weights[r], s[r / 2], added[r], r, logits, space, first);
        multiply_values(loaded.values, weights);
      }
      LATHE_UNROLL
      for (int r = 0; r < RowTiles; ++r) LATHE_UNROLL
      for (int i = 0; i < 4; ++i) added[r][i / 2][i % 2] = next[r][i / 2][i % 2];
    }
  }

  LATHE_DEVICE_MEMBER void stage(const Partial<kRows, DV>& part) {
    LATHE_UNROLL
    for (int r = 0; r < RowTiles; ++r) {
      float sum = rows[r].sum;
      sum += shuffle_xor(sum, 1);
      sum += shuffle_xor(sum, 2);
      if (lane() % 4 == 0) part.put(8 * r + lane() / 4, {rows[r].largest, sum});
      LATHE_UNROLL
      for (int e = 0; e < 2; ++e) LATHE_UNROLL
      for (int i = 0; i < kBlocks * kValueChunks; ++i) {
        float* to = part.sums(8 * r + lane() % 4 * 2 + e) + (i / kBlocks * 8 + lane() / 4) * kVector + i % kBlocks * 2;
        to[0] = out[r][i][e], to[1] = out[r][i][e + 2];
      }
    }
  }
};

// Four columns of a row to the result.
template <class Out, class V, class Logits, class Fusion>
LATHE_DEVICE void write(const Merged& merged, const Out& y, const V& values, const Logits& logits, const Fusion& fusion,
                        const RowSpace& space, int row, int column) {
  const long left = y.dim(3) - column;
  if (space.first + row >= space.rows || left <= 0) return;
  long c[4];
  space.place(row, c);
  c[3] = column;
  const ToMeans mean = logits.to_means(merged.row, c[1]);
  float v[4];
  LATHE_UNROLL
  for (int j = 0; j < 4; ++j) v[j] = mean(merged.sums.at[j]);
  if constexpr (Logits::kMeanForNone)
    if (mean.is_of_all) mean_of_values(v, values, {space.batch, space.shared_head, 0, 0}, column);
  const int count = left < 4 ? static_cast<int>(left) : 4;
  fusion.template apply<3, 4>(v, c, count);
  store<3, 4>(y, c, v, count);
}

// The new rows of a head into its caches, by one block. Of 16 bits, the first is stored as it has been loaded, if it
// has.
template <int Threads, class Tile, class K, class V>
LATHE_DEVICE void write_new_rows(const Tile& tile, const typename Tile::NewRow& newest, const K& keys, const V& values,
                                 const long (&kv)[4]) {
  constexpr int kStored = Tile::kBoth && Tile::kVector == 8 ? 1 : 0;
  if (kStored == 1 && warp() == 0) tile.store_new_row(newest, keys, values, kv);
  write_new<Threads>(keys, kv, kStored, thread_x());
  write_new<Threads>(values, kv, kStored, Threads - 1 - thread_x());
}

// Grid (batch * heads of keys * tiles of rows * Splits). The warps of a cluster's Splits blocks take 16 keys each in
// turns, so that a context that is not full keeps all of them busy. kRechecks: keys are hidden by numbers that may
// have weight in a row of which no other key is seen.
template <int D, int DV, int Warps, int RowTiles, int Splits, bool kRechecks, class Q, class K, class V, class Out,
          class Logits, class Fusion>
LATHE_DEVICE void attend(const Q& q, const K& k, const V& v, const Out& y, const Logits& logits, const Fusion& fusion,
                         const Skipping& skipping) {
  using Tile = WarpTile<typename Q::Type, D, DV, RowTiles>;
  constexpr int kRows = Tile::kRows, kThreads = 32 * Warps;
  using Part = Partial<kRows, DV>;
  const long group = q.dim(1) / k.dim(1), rows = q.dim(2) * group;
  const HeadOfBlock at(k.dim(1), (rows + kRows - 1) / kRows * Splits);
  const long kv[4] = {at.batch, at.head, 0, 0};
  const RowSpace space{kv[0], kv[1], group, rows, static_cast<long>(at.block / Splits) * kRows};
  const int split = at.block % Splits;
  long last[4], nearest[4];
  space.place(0, nearest);
  space.place(kRows - 1, last);
  const long end = logits.seen.end_of(last[2]), begin = logits.seen.first_of(nearest[2]) / kKeys * kKeys;
  float* const shared = reinterpret_cast<float*>(dynamic_shared());
  const auto of_warp = [&](int i) { return Part{shared + i * Part::kSize}; };
  using Blocks = Exchange<Splits, kRows, DV, kThreads>;
  const Blocks blocks{shared + Warps * Part::kSize, reinterpret_cast<uint64*>(shared + (Warps + Splits) * Part::kSize),
                      split};
  const auto of_block = [&](int i) { return blocks.of(i); };
  // Of caches, all but the last keys have been there for long: the first that each warp reads are on their way while
  // the launches before compute them.
  const long first = begin + (warp() * Splits + split) * kKeys;
  let_next_begin();
  blocks.begin();
  const long near[4] = {kv[0], kv[1], first + lane() % kKeys, 0};
  if (near[2] < end) {
    if (lane() < kKeys)
      prefetch_row(k, near);
    else
      prefetch_row(v, near);
  }
  blocks.wait_for_all();
  dependency_wait();
  const auto keys = of_entry(k, at.batch);
  const auto values = of_entry(v, at.batch);
  Tile tile;
  typename Tile::Loaded loaded;
  typename Tile::NewRow newest;
  typename Tile::Booleans booleans;
  tile.load_mask(booleans, logits, space, first);
  if constexpr (Tile::kBoth) tile.load(loaded, k, v, kv, first, 15u);
  tile.load_queries(q, space);
  if constexpr (Tile::kBoth) tile.load_new_row(newest, keys, values, kv);
  for (bool all = false;; all = true) {
    tile.clear();
    if (Tile::kBoth && all) tile.load(loaded, k, v, kv, first, 15u);
    tile.run(loaded, booleans, keys, values, newest, logits, space, kv, first, Warps * Splits * kKeys, end,
             skipping.low, all);
    tile.stage(of_warp(warp()));
    barrier();
    for (int i = thread_x(); i < Blocks::kVectors; i += kThreads)
      blocks.send(merge<Warps>(of_warp, i / (DV / 4), i % (DV / 4) * 4), i);
    blocks.wait(all);
    bool again = false;
    if constexpr (kRechecks)
      again = !all && ballot(!(largest_of<Splits>(of_block, lane() % kRows) > skipping.floor)) != 0;
    if (!again) {
      if (at.block == Splits - 1)  // which seldom merges; all have read the caches, as each has sent its part
        write_new_rows<kThreads>(tile, newest, keys, values, kv);
      for (int i = split * kThreads + thread_x(); i < Blocks::kVectors; i += Splits * kThreads) {
        const int row = i / (DV / 4), column = i % (DV / 4) * 4;
        write(merge<Splits>(of_block, row, column), y, values, logits, fusion, space, row, column);
      }
      return;
    }
    blocks.begin_again();
  }
}

}  // namespace decode
