// SPDX-License-Identifier: Apache-2.0
// Normalisation of groups of channels that lie side by side at each position ("channels-last"). A block reads all
// channels of its positions by whole vectors, so that a group needs no vectors of its own. In two launches: states of
// groups by parts of the positions, which each block of the second one merges.
#pragma once

#include "normalization/columns.cuh"

namespace group_normalization {

// kAcross threads have W neighbouring channels each, of one position; kRows positions are read at once. Channels are
// the last kept dimension, kGroup of them are a group.
template <int kKept_, int W_, int kAcross_, int kRows_, int kGroup_, int kSplits_>
struct Shape {
  static constexpr int kKept = kKept_, W = W_, kAcross = kAcross_, kRows = kRows_, kGroup = kGroup_;
  static constexpr int kSplits = kSplits_, kChannels = kAcross * W, kGroups = kChannels / kGroup;
  static constexpr int kUnroll = 4, kThreads = (kAcross * kRows + 31) / 32 * 32;
  static_assert(kChannels % kGroup == 0 && kThreads <= 1024, "what a block has");
};

using State = Moments::State;

// What the first launch leaves of a part: how many elements that has, the second one knows.
struct alignas(8) PartState {
  float mean, squares;
};

// Merges `count` states of each group, which at(group, i) gives, by so many threads; put(group, state) takes the result
// once. States are read several at once.
template <class Shape, int kCount, class At, class Put>
LATHE_DEVICE void merge_groups(const Moments& moments, const At& at, const Put& put) {
  constexpr int kRoom = Shape::kThreads / Shape::kGroups < kCount ? Shape::kThreads / Shape::kGroups : kCount;
  constexpr int kLanes = kRoom >= 32 ? 32 : kRoom >= 16 ? 16 : kRoom >= 8 ? 8 : kRoom >= 4 ? 4 : kRoom >= 2 ? 2 : 1;
  constexpr int kEach = (kCount + kLanes - 1) / kLanes, kAtOnce = kEach < 4 ? kEach : 4;
  const int lane = thread_x() % kLanes;
  for (int first = 0; first < Shape::kGroups; first += Shape::kThreads / kLanes) {
    const int group = first + thread_x() / kLanes;
    State state = moments.start();
    for (int i = lane; group < Shape::kGroups && i < kCount; i += kAtOnce * kLanes) {
      State several[kAtOnce];
      LATHE_UNROLL
      for (int j = 0; j < kAtOnce; ++j)
        several[j] = i + j * kLanes < kCount ? at(group, i + j * kLanes) : moments.start();
      moments.merge(state, moments.all(several));
    }
    reduce_lanes<kLanes>(moments, state);
    if (lane == 0 && group < Shape::kGroups) put(group, state);
  }
}

// Where a block and a thread of it work: at first coordinates c of the thread's channels.
template <class Shape, class In>
struct Place {
  static constexpr int R = In::kRank;
  long c[R], positions, first;
  Part part;
  bool inside;

  LATHE_DEVICE_MEMBER explicit Place(const In& x) : positions(extent_of<Shape::kKept, R - Shape::kKept>(x)) {
    part = part_of(positions, block_y(), Shape::kSplits);
    unflatten_dims<0, Shape::kKept - 1>(x, block_x(), c);
    c[Shape::kKept - 1] = thread_x() % Shape::kAcross * Shape::W;
    first = part.begin + thread_x() / Shape::kAcross;
    inside = thread_x() < Shape::kAcross * Shape::kRows;
  }
};

LATHE_DEVICE long state_at(long group, long split, long splits) { return group * splits + split; }

// On a grid (batch, kSplits); states[batch][group][split]. Shared memory: kRows * kChannels states.
template <class Shape, class In>
LATHE_DEVICE void summarize_groups(const In& x, PartState* states, const Moments& moments) {
  constexpr int W = Shape::W;
  Place<Shape, In> place(x);
  State own[W];
  LATHE_UNROLL
  for (int j = 0; j < W; ++j) own[j] = moments.start();
  dependency_wait();
  if (place.inside)
    accumulate_columns<Shape::kKept, W, Shape::kUnroll>(moments, own, x, place.c, place.first, place.part.end,
                                                        Shape::kRows);
  auto* shared = reinterpret_cast<State*>(dynamic_shared());
  if (place.inside) {
    LATHE_UNROLL
    for (int j = 0; j < W; ++j)
      shared[(thread_x() / Shape::kAcross * W + j) * Shape::kAcross + thread_x() % Shape::kAcross] = own[j];
  }
  barrier();
  const auto at = [&](int group, int i) {
    const int channel = group * Shape::kGroup + i % Shape::kGroup, row = i / Shape::kGroup;
    return shared[(row * W + channel % W) * Shape::kAcross + channel / W];
  };
  merge_groups<Shape, Shape::kGroup * Shape::kRows>(moments, at, [&](int group, const State& state) {
    states[state_at(block_x() * Shape::kGroups + group, block_y(), Shape::kSplits)] = {state.mean, state.squares};
  });
}

// On the same grid. Shared memory: kGroups factors.
template <class Shape, class In, class Affine, class Fusion, class... Out>
LATHE_DEVICE void normalize_groups(const In& x, const PartState* states, const Moments& moments, const Affine& affine,
                                   const Fusion& fusion, const Out&... results) {
  constexpr int W = Shape::W, kKept = Shape::kKept;
  Place<Shape, In> place(x);
  dependency_wait();
  float v[Shape::kUnroll][W];  // on their way while states are merged
  if (place.inside) load_strip<kKept>(x, v, place.c, place.first, place.part.end, Shape::kRows);
  auto* shared = reinterpret_cast<Moments::Factors*>(dynamic_shared());
  const auto at = [&](int group, int i) {
    const PartState state = states[state_at(block_x() * Shape::kGroups + group, i, Shape::kSplits)];
    const Part part = part_of(place.positions, i, Shape::kSplits);
    return State{static_cast<float>((part.end - part.begin) * Shape::kGroup), state.mean, state.squares};
  };
  const auto length = static_cast<float>(place.positions * Shape::kGroup);
  merge_groups<Shape, Shape::kSplits>(
      moments, at, [&](int group, const State& state) { shared[group] = moments.finish(state, length); });
  barrier();
  if (!place.inside) return;
  Moments::Factors factors[W];
  LATHE_UNROLL
  for (int j = 0; j < W; ++j) factors[j] = shared[(thread_x() % Shape::kAcross * W + j) / Shape::kGroup];
  store_strip<kKept>(x, moments, factors, affine, fusion, v, place.c, place.first, place.part.end, Shape::kRows,
                     results...);
  normalize_strip<kKept, W, Shape::kUnroll>(x, moments, factors, affine, fusion, place.c,
                                            place.first + Shape::kUnroll * Shape::kRows, place.part.end, Shape::kRows,
                                            results...);
}

}  // namespace group_normalization
