// SPDX-License-Identifier: Apache-2.0
// Rows of queries, keys and values from memory to registers, as operands of products.
#pragma once

#include "attention/inlined.cuh"
#include "attention/tiles.cuh"

namespace decode {

inline constexpr int kKeys = 16;  // that a warp takes at a time

// 16 bytes of T, neighbours along dimension 3: what is read, or what a program makes of it, as operands of products.
template <class T, class Tensor>
LATHE_DEVICE Vec<uint32, 4> load_words(const Tensor& tensor, const long (&c)[4]) {
  static_assert(is_same<T, typename Tensor::Type>, "a program converts");
  auto words = load_streaming(reinterpret_cast<const Vec<uint32, 4>*>(tensor.data + offset_of(tensor, c)));
  if constexpr (is_same<T, float>) {
    LATHE_UNROLL
    for (uint32& word : words.at) word = tf32_bits(bit_cast<float>(word));
  }
  return words;
}
template <class T, class Tensor>
LATHE_DEVICE Vec<uint32, 4> computed_words(const Tensor& tensor, const long (&c)[4]) {
  constexpr int kCount = 16 / static_cast<int>(sizeof(T));
  float v[kCount];
  load<3, kCount>(tensor, c, v, kCount);
  Vec<T, kCount> rounded;
  LATHE_UNROLL
  for (int i = 0; i < kCount; ++i) rounded.at[i] = as_operand<T>(v[i]);
  return bit_cast<Vec<uint32, 4>>(rounded);
}
template <class T, class Tensor, class Program>
LATHE_DEVICE Vec<uint32, 4> load_words(const Computed<Tensor, Program>& tensor, const long (&c)[4]) {
  return computed_words<T>(tensor, c);
}
template <class T, class Tensor, int Batch, int Heads, int Rows, int Size, int Run>
LATHE_DEVICE Vec<uint32, 4> load_words(const Collapsed<Tensor, Batch, Heads, Rows, Size, Run>& tensor,
                                       const long (&c)[4]) {
  return computed_words<T>(tensor, c);
}
template <class T, class Pool, class Table>
LATHE_DEVICE Vec<uint32, 4> load_words(const Paged<Pool, Table>& tensor, const long (&c)[4]) {
  long at[4];
  if (!tensor.find(c, at)) return {};
  return load_words<T>(tensor.pool, at);
}

// Of new rows, by their numbers among these; and one of them to its place, where that is what has been loaded.
template <class T, class Tensor>
LATHE_DEVICE Vec<uint32, 4> load_new_words(const Tensor&, const long (&)[4]) {
  return {};
}
template <class T, class Cache, class Rows, class First>
LATHE_DEVICE Vec<uint32, 4> load_new_words(const Updated<Cache, Rows, First>& tensor, const long (&c)[4]) {
  return load_words<T>(tensor.rows, c);
}
template <class Tensor>
LATHE_DEVICE void store_new_words(const Tensor&, const long (&)[4], const Vec<uint32, 4>&) {}
template <class Cache, class Rows, class First>
LATHE_DEVICE void store_new_words(const Updated<Cache, Rows, First>& tensor, const long (&c)[4],
                                  const Vec<uint32, 4>& words) {
  if (c[2] >= tensor.count) return;
  const long to[4] = {c[0], c[1], tensor.begin + c[2], c[3]};
  store_vector(reinterpret_cast<uint32*>(tensor.data + offset_of(static_cast<const Cache&>(tensor), to)), words);
}

// Brings a key's row, or a value's, to the last cache: what lies there may still be written.
template <class Tensor>
LATHE_DEVICE void prefetch_row(const Tensor& tensor, const long (&c)[4]) {
  const auto* row = reinterpret_cast<const unsigned char*>(tensor.data + offset_of(tensor, c));
  const auto bytes = static_cast<int>(tensor.dim(3) * sizeof(typename Tensor::Type));
  for (int at = 0; at < bytes; at += 128) prefetch_line(row + at);
}
template <class Tensor, class Program>
LATHE_DEVICE void prefetch_row(const Computed<Tensor, Program>&, const long (&)[4]) {}
// Where it lies may be computed by a launch before.
template <class Pool, class Table>
LATHE_DEVICE void prefetch_row(const Paged<Pool, Table>&, const long (&)[4]) {}

// What the lanes of a warp read of rows. D and DV: the sizes of keys and values, rounded up to multiples of 64 and 128
// bytes.
template <class T, int D, int DV>
struct WarpRows {
  static constexpr int kVector = 16 / static_cast<int>(sizeof(T));  // elements of 16 bytes
  // A chunk is what neighbouring lanes read at a time, 16 bytes each: four lanes of a key, eight of a value.
  static constexpr int kChunks = D / (4 * kVector), kValueChunks = DV / (8 * kVector);

  // 16 keys and values: both are on the way at the same time where registers hold them, and then also before it is
  // known which keys are seen. So is the first row that is new, before it is known where it belongs: most runs have
  // one. Of larger heads each is loaded where it is needed.
  struct Loaded {
    Vec<uint32, 4> keys[2][kChunks], values[kValueChunks][4];
  };
  struct NewRow {
    Vec<uint32, 4> keys[kChunks], values[kValueChunks];
  };
  static constexpr bool kBoth = (D + DV) * static_cast<int>(sizeof(T)) <= 512;

  template <class K, class V>
  LATHE_DEVICE_MEMBER void load_new_row(NewRow& row, const K& k, const V& v, const long (&kv)[4]) const {
    LATHE_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const long at[4] = {kv[0], kv[1], 0, (chunk * 4 + lane() % 4) * kVector};
      row.keys[chunk] = {};
      if (at[3] < k.dim(3)) row.keys[chunk] = load_new_words<T>(k, at);
    }
    LATHE_UNROLL
    for (int chunk = 0; chunk < kValueChunks; ++chunk) {
      const long at[4] = {kv[0], kv[1], 0, (chunk * 8 + lane() / 4) * kVector};
      row.values[chunk] = {};
      if (at[3] < v.dim(3)) row.values[chunk] = load_new_words<T>(v, at);
    }
  }

  template <class K, class V>
  LATHE_DEVICE_MEMBER void store_new_row(const NewRow& row, const K& k, const V& v, const long (&kv)[4]) const {
    LATHE_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const long at[4] = {kv[0], kv[1], 0, (chunk * 4 + lane() % 4) * kVector};
      if (lane() < 4 && at[3] < k.dim(3)) store_new_words(k, at, row.keys[chunk]);
    }
    LATHE_UNROLL
    for (int chunk = 0; chunk < kValueChunks; ++chunk) {
      const long at[4] = {kv[0], kv[1], 0, (chunk * 8 + lane() / 4) * kVector};
      if (lane() % 4 == 0 && at[3] < v.dim(3)) store_new_words(v, at, row.values[chunk]);
    }
  }

  template <class K>
  LATHE_DEVICE_MEMBER void load_keys(Vec<uint32, 4> (&keys)[2][kChunks], const K& k, const long (&kv)[4],
                                     long first) const {
    LATHE_UNROLL
    for (int n = 0; n < 2; ++n) LATHE_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const long at[4] = {kv[0], kv[1], first + n * 8 + lane() / 4, (chunk * 4 + lane() % 4) * kVector};
      keys[n][chunk] = {};
      if (at[2] < k.dim(2) && at[3] < k.dim(3)) keys[n][chunk] = load_words<T>(k, at);
    }
  }
  template <class K>
  LATHE_DEVICE_MEMBER void take_new_keys(Vec<uint32, 4> (&keys)[2][kChunks], const K& k, const long (&kv)[4],
                                         long first, const NewRow& row) const {
    if (!has_new<kKeys>(k, first)) return;
    LATHE_UNROLL
    for (int n = 0; n < 2; ++n) LATHE_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const long at[4] = {kv[0], kv[1], new_row(k, first + n * 8 + lane() / 4), (chunk * 4 + lane() % 4) * kVector};
      if (kBoth && at[2] == 0) keys[n][chunk] = row.keys[chunk];
      if (at[2] >= (kBoth ? 1 : 0) && at[3] < k.dim(3)) keys[n][chunk] = load_new_words<T>(k, at);
    }
  }

  // The lane's keys: of values and weights.
  LATHE_DEVICE_MEMBER static long key_of(long first, int i) { return first + i / 2 * 8 + lane() % 4 * 2 + i % 2; }
  template <class V>
  LATHE_DEVICE_MEMBER void load_values(Vec<uint32, 4> (&values)[kValueChunks][4], const V& v, const long (&kv)[4],
                                       long first, unsigned seen) const {
    LATHE_UNROLL
    for (int chunk = 0; chunk < kValueChunks; ++chunk) LATHE_UNROLL
    for (int i = 0; i < 4; ++i) {
      const long at[4] = {kv[0], kv[1], key_of(first, i), (chunk * 8 + lane() / 4) * kVector};
      values[chunk][i] = {};
      if ((seen >> i & 1) != 0 && at[2] < v.dim(2) && at[3] < v.dim(3)) values[chunk][i] = load_words<T>(v, at);
    }
  }
  template <class V>
  LATHE_DEVICE_MEMBER void take_new_values(Vec<uint32, 4> (&values)[kValueChunks][4], const V& v, const long (&kv)[4],
                                           long first, const NewRow& row) const {
    if (!has_new<kKeys>(v, first)) return;
    LATHE_UNROLL
    for (int chunk = 0; chunk < kValueChunks; ++chunk) LATHE_UNROLL
    for (int i = 0; i < 4; ++i) {
      const long at[4] = {kv[0], kv[1], new_row(v, key_of(first, i)), (chunk * 8 + lane() / 4) * kVector};
      if (kBoth && at[2] == 0) values[chunk][i] = row.values[chunk];
      if (at[2] >= (kBoth ? 1 : 0) && at[3] < v.dim(3)) values[chunk][i] = load_new_words<T>(v, at);
    }
  }
  // The 16 from `first` on, of which values come later where registers do not hold both.
  template <class K, class V>
  LATHE_DEVICE_MEMBER void load(Loaded& loaded, const K& k, const V& v, const long (&kv)[4], long first,
                                unsigned seen) const {
    load_keys(loaded.keys, k, kv, first);
    if constexpr (kBoth) load_values(loaded.values, v, kv, first, seen);
  }
  // What is hidden may be anything, and has no part in the sums.
  LATHE_DEVICE_MEMBER static void hide_values(Vec<uint32, 4> (&values)[kValueChunks][4], unsigned seen) {
    LATHE_UNROLL
    for (int chunk = 0; chunk < kValueChunks; ++chunk) LATHE_UNROLL
    for (int i = 0; i < 4; ++i)
      if ((seen >> i & 1) == 0) values[chunk][i] = {};
  }
};

}  // namespace decode
