// SPDX-License-Identifier: Apache-2.0
// The K best elements of each row, best first, equals in the order of their positions. An element and its position make
// one 64-bit key, unique in its row. The K-th best is found digit by digit, by counting the keys that begin as it does
// (radix selection), until few enough keys are as good as it may be; those are put in order. NaN is the largest.
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
LATHE_DEVICE long smaller(long a, long b) { return a < b ? a : b; }
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

// Calls use(key) for key_at(begin), ..., key_at(end - 1) by all threads; a key of 0 is none. Loads go ahead in fours,
// none of them behind a branch.
template <int Threads, class KeyAt, class Use>
LATHE_DEVICE void for_keys(Part part, const KeyAt& key_at, const Use& use) {
  LATHE_NO_UNROLL
  for (long first = part.begin + thread_x(); first < part.end; first += 4 * Threads) {
    uint64 keys[4];
    LATHE_UNROLL
    for (int j = 0; j < 4; ++j) keys[j] = key_at(smaller(first + j * Threads, part.end - 1));
    LATHE_UNROLL
    for (int j = 0; j < 4; ++j)
      if (first + j * Threads < part.end && keys[j] != 0) use(keys[j]);
  }
}

// A digit of the K-th best key, by `bins`, which count keys by that digit, the largest digit first: its value, how many
// of the best keys have it (`wanted`), and how many keys have it at all. Where there are fewer keys than wanted, it is
// 0.
struct Digit {
  int value;
  uint32 wanted, count;
};
LATHE_DEVICE Digit find_digit(const uint32* bins, uint32 wanted) {
  constexpr int kOwn = 8;  // of a lane
  struct Bins {
    uint32 at[kOwn];
  };
  const uint32* first = bins + lane() * kOwn;
  const Vec<uint32, 4> halves[] = {load_vector<4>(first), load_vector<4>(first + 4)};
  const Bins own = bit_cast<Bins>(halves);
  uint32 sum = 0;
  LATHE_UNROLL
  for (int i = 0; i < kOwn; ++i) sum += own.at[i];
  uint32 upto = sum;
  LATHE_UNROLL
  for (int distance = 1; distance < 32; distance *= 2) {
    const uint32 before = shuffle_up(upto, distance);
    if (lane() >= distance) upto += before;
  }
  Digit digit{255 - lane() * kOwn, wanted - (upto - sum), own.at[0]};
  LATHE_UNROLL
  for (int i = 1; i < kOwn; ++i) {
    if (digit.wanted <= digit.count) break;
    digit = {digit.value - 1, digit.wanted - digit.count, own.at[i]};
  }
  const int short_of = count_bits(ballot(upto < wanted));  // the first lanes
  const int from = short_of < 31 ? short_of : 31;
  return {shuffle_idx(digit.value, from), shuffle_idx(digit.wanted, from), shuffle_idx(digit.count, from)};
}

constexpr int kRanked = 512;                         // keys that are put in order by counting
constexpr int kBins = 256, kCounts = 3 * kBins + 4;  // in shared memory

// Calls put(slot, key) for keys from `least` on, of which `taken` counts those that were taken. A key beyond Room is
// counted only.
template <int Threads, int Room, class KeyAt, class Put>
LATHE_DEVICE void take_keys(Part part, const KeyAt& key_at, uint64 least, int* taken, const Put& put) {
  for_keys<Threads>(part, key_at, [&](uint64 key) {
    if (key < least) return;
    const int slot = atomic_add(taken, 1);
    if (slot < Room) put(slot, key);
  });
  barrier();
}

// Calls put(slot, key) for the K best keys, in any order, and for others that follow them, Most in all; for all keys
// where there are fewer than K.
struct Selection {
  int count;
  uint64 least;  // they are the keys from this one on
};
template <int Threads, int K, int Most, class KeyAt, class Put>
LATHE_DEVICE Selection select_keys(Part part, const KeyAt& key_at, uint32* counts, const Put& put) {
  LATHE_NO_UNROLL
  for (int i = thread_x(); i < kCounts; i += Threads) counts[i] = 0;
  barrier();
  uint64 prefix = 0;
  int shift = 56;
  for (uint32 wanted = K;; shift -= 8) {
    const int pass = (56 - shift) / 8;
    uint32 *bins = counts + pass % 3 * kBins, *next = counts + (pass + 1) % 3 * kBins;
    LATHE_NO_UNROLL
    for (int i = thread_x(); i < kBins; i += Threads) next[i] = 0;  // nobody reads them any more: see the barrier
    for_keys<Threads>(part, key_at, [&](uint64 key) {
      if (pass == 0 || key >> (shift + 8) == prefix) atomic_add(bins + (255 - (key >> shift & 255)), 1u);
    });
    barrier();
    const Digit digit = find_digit(bins, wanted);
    prefix = prefix << 8 | static_cast<uint64>(digit.value);
    wanted = digit.wanted;
    if (K - wanted + digit.count <= Most || shift == 0) break;
  }
  int* const taken = reinterpret_cast<int*>(counts + 3 * kBins);
  take_keys<Threads, Most>(part, key_at, prefix << shift, taken, put);
  return {*taken, prefix << shift};
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

// Keys that are selected where K are wanted and there is room for some more: the slack saves a pass that would tell
// apart keys that are close to each other.
template <int Room, int K>
constexpr int kMost = K + (Room - K) / 4;

// Writes the best of `count` keys to a row.
template <int Kept, int Threads, int Room, int K, class In, class Values, class Indices, int R>
LATHE_DEVICE void write_best(uint64* best, int count, const In& x, const Values& values, const Indices& indices,
                             const long (&row)[R]) {
  const auto write = [&](int rank, uint64 key) {
    long c[R];
    LATHE_UNROLL
    for (int i = 0; i < R; ++i) c[i] = row[i];
    const long position = position_of(key);
    c[Kept] = position;
    const auto value = x.data[offset_of(x, c)];
    c[Kept] = rank;
    values.data[offset_of(values, c)] = value;
    indices.data[offset_of(indices, c)] = position;
  };
  if constexpr (Room <= kRanked) {  // a warp counts the keys before one, which costs no barrier
    LATHE_NO_UNROLL
    for (int i = warp(); i < count; i += Threads / 32) {
      int rank = 0;
      LATHE_NO_UNROLL
      for (int first = 0; first < count; first += 32) {
        const int other = first + lane();
        rank += count_bits(ballot(other < count && best[other] > best[i]));
      }
      if (rank < K && lane() == 0) write(rank, best[i]);
    }
  } else {
    for (int i = count + thread_x(); i < Room; i += Threads) best[i] = 0;
    sort_keys<Threads, Room>(best);
    for (int i = thread_x(); i < K; i += Threads) write(i, best[i]);
  }
}

// Selects and writes the best of the keys.
template <int Kept, int Threads, int Room, int K, class KeyAt, class In, class Values, class Indices, int R>
LATHE_DEVICE void write_selected(Part part, const KeyAt& key_at, const In& x, const Values& values,
                                 const Indices& indices, const long (&row)[R]) {
  uint64* const best = reinterpret_cast<uint64*>(dynamic_shared());
  const Selection selected = select_keys<Threads, K, kMost<Room, K> >(
      part, key_at, reinterpret_cast<uint32*>(best + Room), [&](int slot, uint64 key) { best[slot] = key; });
  write_best<Kept, Threads, Room, K>(best, selected.count, x, values, indices, row);
}

// One block for each row.
template <int Kept, bool Largest, int Threads, int Room, int K, class In, class Values, class Indices>
LATHE_DEVICE void select_best(const In& x, const Values& values, const Indices& indices) {
  long c[In::kRank];
  unflatten_dims<0, Kept>(x, block_x(), c);
  dependency_wait();
  const ElementKeys<Largest, Kept, In, In::kRank> keys{x, c};
  write_selected<Kept, Threads, Room, K>(Part{0, x.dim(Kept)}, keys, x, values, indices, c);
}

// Few long rows, in two launches. Where many are wanted: grid (rows, Parts) leaves the best keys of each part, then a
// block for each row takes the best of them.
template <int Kept, bool Largest, int Threads, int K, int Parts, class In>
LATHE_DEVICE void select_candidates(const In& x, uint64* candidates) {
  long c[In::kRank];
  unflatten_dims<0, Kept>(x, block_x(), c);
  dependency_wait();
  uint64* const own = candidates + (static_cast<long>(block_x()) * Parts + block_y()) * K;
  const Selection selected = select_keys<Threads, K, K>(
      part_of(x.dim(Kept), block_y(), Parts), ElementKeys<Largest, Kept, In, In::kRank>{x, c},
      reinterpret_cast<uint32*>(dynamic_shared()), [&](int slot, uint64 key) { own[slot] = key; });
  for (int i = selected.count + thread_x(); i < K; i += Threads) own[i] = 0;
}

template <int Kept, int Threads, int Room, int K, int Parts, class In, class Values, class Indices>
LATHE_DEVICE void select_among(const In& x, const uint64* candidates, const Values& values, const Indices& indices) {
  long c[In::kRank];
  unflatten_dims<0, Kept>(x, block_x(), c);
  dependency_wait();
  const uint64* own = candidates + static_cast<long>(block_x()) * Parts * K;
  write_selected<Kept, Threads, Room, K>(
      Part{0, Parts * K}, [&](long i) { return own[i]; }, x, values, indices, c);
}

// Where few are wanted: a warp finds the best key of each group of Group neighbours; then a block for each row reads
// again the groups of the K best of these, for a key that is among the K best of its row is in a group whose best is,
// too.
template <int Group>
LATHE_DEVICE long groups_of(long length) {
  return (length + Group - 1) / Group;
}

template <int Kept, bool Largest, int Threads, int Group, class In>
LATHE_DEVICE void best_of_groups(const In& x, uint64* bests) {
  const long groups = groups_of<Group>(x.dim(Kept)), index = static_cast<long>(block_x()) * (Threads / 32) + warp();
  dependency_wait();
  if (index >= extent_of<0, Kept>(x) * groups) return;
  long c[In::kRank];
  unflatten_dims<0, Kept>(x, index / groups, c);
  const ElementKeys<Largest, Kept, In, In::kRank> keys{x, c};
  uint64 own[Group / 32], best = 0;
  LATHE_UNROLL
  for (int i = 0; i < Group / 32; ++i) {
    const long position = index % groups * Group + i * 32 + lane();
    own[i] = keys(smaller(position, x.dim(Kept) - 1));  // the last one again behind the end
  }
  LATHE_UNROLL
  for (const uint64 key : own) best = key > best ? key : best;
  LATHE_UNROLL
  for (int mask = 16; mask > 0; mask /= 2) {
    const uint64 other = exchange(best, mask);
    best = other > best ? other : best;
  }
  if (lane() == 0) bests[index] = best;
}

template <int Kept, bool Largest, int Threads, int Room, int K, int Group, class In, class Values, class Indices>
LATHE_DEVICE void select_in_groups(const In& x, const uint64* bests, const Values& values, const Indices& indices) {
  constexpr int kGroups = kMost<Room, K>;
  uint64* const best = reinterpret_cast<uint64*>(dynamic_shared());
  uint32* const counts = reinterpret_cast<uint32*>(best + Room);
  uint32* const chosen = counts + kCounts;
  int* const taken = reinterpret_cast<int*>(counts + 3 * kBins + 1);  // select_keys sets it to 0
  long c[In::kRank];
  unflatten_dims<0, Kept>(x, block_x(), c);
  const long length = x.dim(Kept), groups = groups_of<Group>(length);
  dependency_wait();
  const uint64* own = bests + block_x() * groups;
  const Selection selected = select_keys<Threads, K, kGroups>(
      Part{0, groups}, [&](long i) { return own[i]; }, counts,
      [&](int slot, uint64 key) { chosen[slot] = static_cast<uint32>(position_of(key) / Group); });
  const ElementKeys<Largest, Kept, In, In::kRank> keys{x, c};
  const auto key_at = [&](long i) {
    const long position = static_cast<long>(chosen[i / Group]) * Group + i % Group;
    const uint64 key = keys(smaller(position, length - 1));
    return position < length && key >= selected.least ? key : 0;
  };
  const Part part{0, static_cast<long>(selected.count) * Group};
  const auto put = [&](int slot, uint64 key) { best[slot] = key; };
  take_keys<Threads, Room>(part, key_at, selected.least, taken, put);
  int count = *taken;
  if (count > Room) {  // the best lie close together
    barrier();
    count = select_keys<Threads, K, kGroups>(part, key_at, counts, put).count;
  }
  write_best<Kept, Threads, Room, K>(best, count, x, values, indices, c);
}
