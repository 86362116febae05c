// SPDX-License-Identifier: Apache-2.0
// Non-maximum suppression: a block for each class of each image sorts its candidates by score and goes through them, as
// many at a time as it has threads. Each is compared with the boxes that are kept, by all threads at once; which of a
// round remain depends on each other, and is settled by a warp, 32 at a time.
#pragma once

#include "generic/rounded.cuh"
#include "generic/select.cuh"

constexpr int kBoxThreads = kSelectThreads;
constexpr int kBoxGroups = kBoxThreads / 32;

struct Box {
  float low[2], high[2], area;
};

// In f32, each operation rounded: the plain evaluation says why.
LATHE_DEVICE bool overlap(const Box& a, const Box& b, float threshold) {
  const float width = (a.high[0] < b.high[0] ? a.high[0] : b.high[0]) - (a.low[0] > b.low[0] ? a.low[0] : b.low[0]);
  const float height = (a.high[1] < b.high[1] ? a.high[1] : b.high[1]) - (a.low[1] > b.low[1] ? a.low[1] : b.low[1]);
  if (!(width > 0) || !(height > 0)) return false;
  const float shared = product(width, height);
  const float all = a.area + b.area - shared;
  return shared > 0 && all > 0 && shared / all > threshold;
}

template <bool kCenter, class Boxes>
LATHE_DEVICE Box box_at(const Boxes& boxes, long image, long index) {
  float v[4];
  LATHE_UNROLL
  for (int i = 0; i < 4; ++i) {
    const long c[3] = {image, index, i};
    v[i] = to_float(element(boxes, c));
  }
  Box box;
  LATHE_UNROLL
  for (int d = 0; d < 2; ++d) {
    const float half = product(v[d + 2], 0.5f);
    box.low[d] = kCenter ? v[d] - half : v[d] < v[d + 2] ? v[d] : v[d + 2];
    box.high[d] = kCenter ? v[d] + half : v[d] < v[d + 2] ? v[d + 2] : v[d];
  }
  box.area = product(box.high[0] - box.low[0], box.high[1] - box.low[1]);
  return box;
}

// The higher the score, and then the lower the index, the lower the key; kNoBox where the score does not count.
constexpr uint64 kNoBox = ~uint64{0};
LATHE_DEVICE uint64 box_key(float score, long index) {
  uint32 bits = bit_cast<uint32>(score + 0.0f);  // -0 equals 0
  bits ^= bits >> 31 ? 0xffffffffu : 0x80000000u;
  return static_cast<uint64>(~bits) << 32 | static_cast<uint32>(index);
}

// Ascending, by a bitonic network whose comparisons all have one direction: what lies beyond the end counts as largest
// and need not be there.
LATHE_DEVICE void sort_keys(uint64* keys, long count) {
  const auto pass = [&](long flip) {
    for (long i = thread_x(); i < count; i += kBoxThreads) {
      const long other = i ^ flip;
      if (other <= i || other >= count || keys[i] <= keys[other]) continue;
      const uint64 key = keys[i];
      keys[i] = keys[other];
      keys[other] = key;
    }
    barrier();
  };
  for (long run = 1; run < count; run *= 2) {
    pass(2 * run - 1);
    for (long distance = run / 2; distance > 0; distance /= 2) pass(distance);
  }
}

struct BoxShared {
  Box boxes[kBoxThreads];
  unsigned kept[kBoxGroups];
  int warps[kBoxGroups];
};

// Which candidates of a warp are kept, one after the other. `overlaps`: those before it that this one overlaps.
LATHE_DEVICE unsigned settle_group(bool is_left, unsigned overlaps) {
  const unsigned left = ballot(is_left);
  unsigned kept = 0;
  for (int i = 0; i < 32; ++i) {
    const unsigned mine = shuffle_idx(overlaps, i);
    if ((left >> i & 1u) && !(mine & kept)) kept |= 1u << i;
  }
  return kept;
}

// Writes the kept boxes' indices, at most `most`, to `list` and how many they are to `count`. `keys` and `kept` are
// scratch, an entry for each box (of `kept`: for each that may be kept).
template <bool kCenter, class Boxes, class Scores, class Counts>
LATHE_DEVICE void suppress_boxes(const Boxes& boxes, const Scores& scores, Counts counts_of, float threshold, long most,
                                 long list_length, uint64* all_keys, Box* all_kept, long* list, long* counts) {
  dependency_wait();
  BoxShared& shared = *reinterpret_cast<BoxShared*>(dynamic_shared());
  const int thread = thread_x();
  const long slot = block_x(), classes = scores.dim(1), count = scores.dim(2), image = slot / classes;
  uint64* const keys = all_keys + slot * count;
  Box* const kept = all_kept + slot * list_length;
  for (long i = thread; i < count; i += kBoxThreads) {
    const long c[3] = {image, slot % classes, i};
    const float score = to_float(element(scores, c));
    keys[i] = counts_of(score) ? box_key(score, i) : kNoBox;
  }
  barrier();
  sort_keys(keys, count);
  if (most > list_length) most = list_length;
  long num_kept = 0;
  for (long first = 0; first < count && num_kept < most && keys[first] != kNoBox; first += kBoxThreads) {
    const uint64 key = first + thread < count ? keys[first + thread] : kNoBox;
    bool is_left = key != kNoBox;
    const long index = static_cast<long>(key & 0xffffffffu);
    const Box box = is_left ? box_at<kCenter>(boxes, image, index) : Box{};
    for (long base = 0; base < num_kept; base += kBoxThreads) {
      barrier();
      if (base + thread < num_kept) shared.boxes[thread] = kept[base + thread];
      barrier();
      const long end = num_kept - base < kBoxThreads ? num_kept - base : kBoxThreads;
      for (long i = 0; is_left && i < end; ++i) is_left = !overlap(shared.boxes[i], box, threshold);
    }
    barrier();
    shared.boxes[thread] = box;
    barrier();
    // Group after group: what is kept of one decides over the threads of the next ones.
    unsigned overlaps = 0;
    for (int i = thread / 32 * 32; i < thread; ++i)
      if (overlap(shared.boxes[i], box, threshold)) overlaps |= 1u << (i % 32);
    for (int group = 0; group < kBoxGroups; ++group) {
      if (warp() == group) {
        const unsigned bits = settle_group(is_left, overlaps);
        if (lane() == 0) shared.kept[group] = bits;
      }
      barrier();
      for (unsigned bits = shared.kept[group]; warp() > group && is_left && bits != 0; bits &= bits - 1)
        is_left = !overlap(shared.boxes[group * 32 + count_bits((bits & (0u - bits)) - 1u)], box, threshold);
    }
    const bool is_kept = (shared.kept[warp()] >> lane() & 1u) != 0;
    int total;
    const long place = num_kept + rank_in_block(is_kept, shared.warps, total);
    if (is_kept && place < most) {
      kept[place] = box;
      list[slot * list_length + place] = index;
    }
    num_kept = num_kept + total < most ? num_kept + total : most;
    barrier();
  }
  if (thread == 0) counts[slot] = num_kept;
}

// Where the boxes of each slot begin among all, in place; their number behind the last. One block.
LATHE_DEVICE void number_boxes(long slots, long* counts) {
  dependency_wait();
  const long sum = counts_to_begins(slots, counts, reinterpret_cast<long*>(dynamic_shared()));
  if (thread_x() == 0) counts[slots] = sum;
}

// Image, class and box of each kept one.
template <class Out>
LATHE_DEVICE void list_boxes(const long* list, const long* begins, long slots, long classes, long list_length,
                             const Out& out) {
  for_each_element(out, [&](const auto& c) {
    long low = 0, high = slots;  // the last slot that does not begin behind it
    while (high - low > 1) {
      const long middle = (low + high) / 2;
      (begins[middle] <= c[0] ? low : high) = middle;
    }
    const long index = list[low * list_length + (c[0] - begins[low])];
    element(out, c) = narrow<typename Out::Type>(c[1] == 0 ? low / classes : c[1] == 1 ? low % classes : index);
  });
}
