// SPDX-License-Identifier: Apache-2.0
// The K best elements of each row, best first, equals in the order of their positions. An element and its position make
// one 64-bit key, unique in its row. NaN is the largest.
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

// Calls use(key) for key_at(begin), ..., key_at(end - 1) by all threads; a key of 0 is none. Loads go ahead in fours.
template <int Threads, class KeyAt, class Use>
LATHE_DEVICE void for_keys(Part part, const KeyAt& key_at, const Use& use) {
  for (long first = part.begin + thread_x(); first < part.end; first += 4 * Threads) {
    uint64 keys[4];
    LATHE_UNROLL
    for (int j = 0; j < 4; ++j) keys[j] = first + j * Threads < part.end ? key_at(first + j * Threads) : 0;
    LATHE_UNROLL
    for (int j = 0; j < 4; ++j)
      if (keys[j] != 0) use(keys[j]);
  }
}

// A digit of the K-th best key, by `bins`, which count keys by that digit: its value, how many of the best keys have it
// (`wanted`), and how many keys have it at all. Where there are fewer keys than wanted, it is 0.
struct Digit {
  int value;
  uint32 wanted, count;
};
LATHE_DEVICE Digit find_digit(const uint32* bins, uint32 wanted) {
  constexpr int kOwn = 8;  // of a lane, the largest first
  uint32 own[kOwn], sum = 0;
  LATHE_UNROLL
  for (int i = 0; i < kOwn; ++i) sum += own[i] = bins[255 - lane() * kOwn - i];
  uint32 upto = sum;
  LATHE_UNROLL
  for (int distance = 1; distance < 32; distance *= 2) {
    const uint32 before = shuffle_up(upto, distance);
    if (lane() >= distance) upto += before;
  }
  Digit digit{255 - lane() * kOwn, wanted - (upto - sum), own[0]};
  LATHE_UNROLL
  for (int i = 1; i < kOwn; ++i) {
    if (digit.wanted <= digit.count) break;
    digit = {digit.value - 1, digit.wanted - digit.count, own[i]};
  }
  const unsigned holds = ballot(upto >= wanted);
  int from = 31;
  LATHE_UNROLL
  for (int i = 31; i >= 0; --i)
    if ((holds >> i & 1) != 0) from = i;
  return {shuffle_idx(digit.value, from), shuffle_idx(digit.wanted, from), shuffle_idx(digit.count, from)};
}

constexpr int kBins = 256, kCounts = 3 * kBins + 1;  // in shared memory

// The K-th best is found digit by digit, by counting the keys that begin as it does (radix selection).
template <int Threads, int K>
struct ByDigits {
  static constexpr bool kSorted = false;

  // Calls put(slot, key) for the K best keys, or all where there are fewer; gives their number. kSorted: the best is
  // put to slot 0, the next one to slot 1; else any to any.
  template <class KeyAt, class Put>
  LATHE_DEVICE_MEMBER static int select(Part part, const KeyAt& key_at, void* shared, const Put& put) {
    auto* const counts = static_cast<uint32*>(shared);
    for (int i = thread_x(); i < kCounts; i += Threads) counts[i] = 0;
    barrier();
    uint64 prefix = 0;
    int shift = 56;
    for (uint32 wanted = K;; shift -= 8) {
      const int pass = (56 - shift) / 8;
      uint32 *bins = counts + pass % 3 * kBins, *next = counts + (pass + 1) % 3 * kBins;
      for (int i = thread_x(); i < kBins; i += Threads) next[i] = 0;  // nobody reads them any more: see the barrier
      for_keys<Threads>(part, key_at, [&](uint64 key) {
        if (pass == 0 || key >> (shift + 8) == prefix) atomic_add(bins + (key >> shift & 255), 1u);
      });
      barrier();
      const Digit digit = find_digit(bins, wanted);
      prefix = prefix << 8 | static_cast<uint64>(digit.value);
      wanted = digit.wanted;
      if (digit.count <= wanted || shift == 0) break;
    }
    const uint64 least = prefix << shift;
    int* const taken = reinterpret_cast<int*>(counts + 3 * kBins);
    for_keys<Threads>(part, key_at, [&](uint64 key) {
      if (key >= least) put(atomic_add(taken, 1), key);
    });
    barrier();
    return *taken;
  }
};

// How many of the keys are larger. kWhole: their number is a multiple of 8.
template <bool kWhole>
LATHE_DEVICE int rank_among(const uint64* keys, int count, uint64 key) {
  constexpr int kAtOnce = 8;
  int rank = 0;
  LATHE_NO_UNROLL
  for (int first = 0; first < count; first += kAtOnce) LATHE_UNROLL
  for (int i = 0; i < kAtOnce; ++i) rank += (kWhole || first + i < count) && keys[first + i] > key;
  return rank;
}

// Groups of threads each have a largest key. The K-th best of these is at most the K-th best key, for K keys are not
// below it; few keys are, which are ranked by comparing each with each. A thread holds Own keys at most. Room: for as
// many as K groups can have.
template <int Threads, int K, int Groups, int Own>
struct ByMaxima {
  static constexpr bool kSorted = true;
  static constexpr int kLanes = Threads / Groups, kRoom = K * Own * kLanes;

  template <class KeyAt, class Put>
  LATHE_DEVICE_MEMBER static int select(Part part, const KeyAt& key_at, void* shared, const Put& put) {
    auto* const maxima = static_cast<uint64*>(shared);
    uint64 *const candidates = maxima + Groups, *const least = candidates + kRoom;
    int* const taken = reinterpret_cast<int*>(least + 1);
    if (thread_x() == 0) *least = 1, *taken = 0;  // where fewer than K groups have a key, all keys are candidates
    uint64 own[Own], largest = 0;
    LATHE_UNROLL
    for (int i = 0; i < Own; ++i) {
      const long at = part.begin + i * Threads + thread_x();
      own[i] = at < part.end ? key_at(at) : 0;
    }
    LATHE_UNROLL
    for (const uint64 key : own) largest = key > largest ? key : largest;
    LATHE_UNROLL
    for (int distance = 1; distance < kLanes; distance *= 2) {
      const uint64 other = shuffle_xor(largest, distance);
      largest = other > largest ? other : largest;
    }
    if (thread_x() % kLanes == 0) maxima[thread_x() / kLanes] = largest;
    barrier();
    if (thread_x() < Groups) {
      const uint64 key = maxima[thread_x()];
      if (key != 0 && rank_among<true>(maxima, Groups, key) == K - 1) *least = key;
    }
    barrier();
    const uint64 bound = *least;
    LATHE_UNROLL
    for (const uint64 key : own)
      if (key >= bound) candidates[atomic_add(taken, 1)] = key;
    barrier();
    const int count = *taken;
    for (int i = thread_x(); i < count; i += Threads) {
      const int rank = rank_among<false>(candidates, count, candidates[i]);
      if (rank < K) put(rank, candidates[i]);
    }
    barrier();
    return count < K ? count : K;
  }
};

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

template <bool Largest, int Kept, class In, int R>
struct ElementKeys {
  const In& x;
  const long (&row)[R];
  LATHE_DEVICE_MEMBER uint64 operator()(long position) const {
    long c[R];
    LATHE_UNROLL
    for (int i = 0; i < R; ++i) c[i] = row[i];
    c[Kept] = position;
    return key_of<Largest>(x.data[offset_of(x, c)], position);
  }
};

// The best of the keys, in order, to a row. Room: a power of two, at least K.
template <class Select, int Kept, int Threads, int Room, int K, class KeyAt, class In, class Values, class Indices,
          int R>
LATHE_DEVICE void write_best(Part part, const KeyAt& key_at, const In& x, const Values& values, const Indices& indices,
                             const long (&row)[R]) {
  uint64* const best = reinterpret_cast<uint64*>(dynamic_shared());
  for (int i = thread_x(); i < Room; i += Threads) best[i] = 0;
  Select::select(part, key_at, best + Room, [&](int slot, uint64 key) { best[slot] = key; });
  if constexpr (!Select::kSorted) sort_keys<Threads, Room>(best);
  long c[R];
  LATHE_UNROLL
  for (int i = 0; i < R; ++i) c[i] = row[i];
  for (int i = thread_x(); i < K; i += Threads) {
    const long position = position_of(best[i]);
    c[Kept] = position;
    const auto value = x.data[offset_of(x, c)];
    c[Kept] = i;
    values.data[offset_of(values, c)] = value;
    indices.data[offset_of(indices, c)] = position;
  }
}

// One block for each row.
template <class Select, int Kept, bool Largest, int Threads, int Room, int K, class In, class Values, class Indices>
LATHE_DEVICE void select_best(const In& x, const Values& values, const Indices& indices) {
  long c[In::kRank];
  unflatten_dims<0, Kept>(x, block_x(), c);
  dependency_wait();
  const ElementKeys<Largest, Kept, In, In::kRank> keys{x, c};
  write_best<Select, Kept, Threads, Room, K>(Part{0, x.dim(Kept)}, keys, x, values, indices, c);
}

// Few long rows, in two launches: grid (rows, Parts) leaves the best keys of each part, then a block for each row.
template <class Select, int Kept, bool Largest, int Threads, int K, int Parts, class In>
LATHE_DEVICE void select_candidates(const In& x, uint64* candidates) {
  long c[In::kRank];
  unflatten_dims<0, Kept>(x, block_x(), c);
  dependency_wait();
  uint64* const own = candidates + (static_cast<long>(block_x()) * Parts + block_y()) * K;
  const ElementKeys<Largest, Kept, In, In::kRank> keys{x, c};
  const int count = Select::select(part_of(x.dim(Kept), block_y(), Parts), keys, dynamic_shared(),
                                   [&](int slot, uint64 key) { own[slot] = key; });
  for (int i = count + thread_x(); i < K; i += Threads) own[i] = 0;
}

template <class Select, int Kept, int Threads, int Room, int K, int Parts, class In, class Values, class Indices>
LATHE_DEVICE void select_among(const In& x, const uint64* candidates, const Values& values, const Indices& indices) {
  long c[In::kRank];
  unflatten_dims<0, Kept>(x, block_x(), c);
  dependency_wait();
  const uint64* own = candidates + static_cast<long>(block_x()) * Parts * K;
  write_best<Select, Kept, Threads, Room, K>(
      Part{0, Parts * K}, [&](long i) { return own[i]; }, x, values, indices, c);
}
