// SPDX-License-Identifier: Apache-2.0
// The K best elements of each row, best first, equals in the order of their positions. An element and its position make
// one 64-bit key, unique in its row; keys above the K-th best so far gather in shared memory and are sorted together
// with the best so far when there is no room for more. NaN is the largest.
#pragma once

#include "lib/reduce.cuh"
#include "lib/space.cuh"

// 32 bits that order like the values.
LATHE_DEVICE uint32 ordered_bits(float value) {
  if (value != value) return 0xffffffffu;
  const uint32 bits = bit_cast<uint32>(value == 0.0f ? 0.0f : value);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
template <class T>
LATHE_DEVICE uint32 ordered_value(T value) {
  if constexpr (is_float<T>)
    return ordered_bits(to_float(value));
  else if constexpr (is_signed_int<T>)
    return static_cast<uint32>(static_cast<int32>(value)) ^ 0x80000000u;
  else
    return static_cast<uint32>(value);
}

// The best is the largest key. No key is 0: positions are below 2 ** 32 - 1.
template <bool Largest, class T>
LATHE_DEVICE uint64 key_of(T value, long position) {
  const uint32 order = ordered_value(value);
  return static_cast<uint64>(Largest ? order : ~order) << 32 | (0xffffffffu - static_cast<uint32>(position));
}
LATHE_DEVICE long position_of(uint64 key) { return static_cast<long>(0xffffffffu - static_cast<uint32>(key)); }

// Sorts Count keys (a power of two), the largest first, by all threads.
template <int Threads, int Count>
LATHE_DEVICE void sort_keys(uint64* keys) {
  for (int size = 2; size <= Count; size *= 2) {
    for (int distance = size / 2; distance > 0; distance /= 2) {
      barrier();
      for (int i = thread_x(); i < Count / 2; i += Threads) {
        const int low = i / distance * distance * 2 + i % distance, high = low + distance;
        const bool falling = (low & size) == 0;
        const uint64 a = keys[low], b = keys[high];
        if ((a < b) == falling) keys[low] = b, keys[high] = a;
      }
    }
  }
  barrier();
}

// The best keys of a row: the first K of shared[0 .. Half - 1], in order, once finish() has run. New ones gather in the
// half behind. Half is a power of two, at least K and Threads.
template <int Threads, int Half, int K>
struct BestKeys {
  uint64* keys;  // 2 * Half
  int* count;    // of new ones
  uint64 least;  // what a key must exceed

  LATHE_DEVICE_MEMBER void start() {
    for (int i = thread_x(); i < 2 * Half; i += Threads) keys[i] = 0;
    if (thread_x() == 0) *count = 0;
    least = 0;
    barrier();
  }
  // By all threads at once; those without a key give 0.
  LATHE_DEVICE_MEMBER void add(uint64 key) {
    if (key > least) keys[Half + atomic_add(count, 1)] = key;
    barrier();
    const bool full = *count > Half - Threads;
    barrier();
    if (full) finish();
  }
  LATHE_DEVICE_MEMBER void finish() {
    sort_keys<Threads, 2 * Half>(keys);
    for (int i = thread_x(); i < Half; i += Threads) keys[Half + i] = 0;
    if (thread_x() == 0) *count = 0;
    least = keys[K - 1];
    barrier();
  }
};

template <int Threads, int Half, int K>
LATHE_DEVICE BestKeys<Threads, Half, K> make_best_keys() {
  uint64* keys = reinterpret_cast<uint64*>(dynamic_shared());
  BestKeys<Threads, Half, K> best{keys, reinterpret_cast<int*>(keys + 2 * Half), 0};
  best.start();
  return best;
}

// Elements of part `part` of the row at c.
template <int Kept, bool Largest, int Threads, int Half, int K, class In, int R>
LATHE_DEVICE void take_elements(BestKeys<Threads, Half, K>& best, const In& x, long (&c)[R], Part part) {
  for (long first = part.begin; first < part.end; first += Threads) {
    const long position = first + thread_x();
    uint64 key = 0;
    if (position < part.end) {
      c[Kept] = position;
      key = key_of<Largest>(x.data[offset_of(x, c)], position);
    }
    best.add(key);
  }
  best.finish();
}

template <int Kept, int Threads, int Half, int K, class In, class Values, class Indices, int R>
LATHE_DEVICE void write_best(const BestKeys<Threads, Half, K>& best, const In& x, const Values& values,
                             const Indices& indices, long (&c)[R]) {
  for (int i = thread_x(); i < K; i += Threads) {
    const long position = position_of(best.keys[i]);
    c[Kept] = position;
    const auto value = x.data[offset_of(x, c)];
    c[Kept] = i;
    values.data[offset_of(values, c)] = value;
    indices.data[offset_of(indices, c)] = position;
  }
}

// One block for each row.
template <int Kept, bool Largest, int Threads, int Half, int K, class In, class Values, class Indices>
LATHE_DEVICE void select_best(const In& x, const Values& values, const Indices& indices) {
  long c[In::kRank];
  unflatten_dims<0, Kept>(x, block_x(), c);
  dependency_wait();
  auto best = make_best_keys<Threads, Half, K>();
  take_elements<Kept, Largest>(best, x, c, Part{0, x.dim(Kept)});
  write_best<Kept>(best, x, values, indices, c);
}

// Few long rows, in two launches: grid (rows, Parts) leaves the best keys of each part, then a block for each row.
template <int Kept, bool Largest, int Threads, int Half, int K, int Parts, class In>
LATHE_DEVICE void select_candidates(const In& x, uint64* candidates) {
  long c[In::kRank];
  unflatten_dims<0, Kept>(x, block_x(), c);
  dependency_wait();
  auto best = make_best_keys<Threads, Half, K>();
  take_elements<Kept, Largest>(best, x, c, part_of(x.dim(Kept), block_y(), Parts));
  for (int i = thread_x(); i < K; i += Threads)
    candidates[(static_cast<long>(block_x()) * Parts + block_y()) * K + i] = best.keys[i];
}

template <int Kept, int Threads, int Half, int K, int Parts, class In, class Values, class Indices>
LATHE_DEVICE void select_among(const In& x, const uint64* candidates, const Values& values, const Indices& indices) {
  long c[In::kRank];
  unflatten_dims<0, Kept>(x, block_x(), c);
  dependency_wait();
  auto best = make_best_keys<Threads, Half, K>();
  const uint64* own = candidates + static_cast<long>(block_x()) * Parts * K;
  // The best of all parts, then the second best of all: few of the later ones are good enough to be sorted.
  for (int first = 0; first < Parts * K; first += Threads) {
    const int i = first + thread_x();
    best.add(i < Parts * K ? own[i % Parts * K + i / Parts] : 0);
  }
  best.finish();
  write_best<Kept>(best, x, values, indices, c);
}
