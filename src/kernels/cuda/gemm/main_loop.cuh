// SPDX-License-Identifier: Apache-2.0
// The main loop of every matrix product: a ring of panels in shared memory that loaders fill while a tile multiplies.
#pragma once

#include "lib/intrinsics.cuh"

namespace gemm {

template <class Tile>
inline constexpr int kStageBytes = Tile::PanelA::kBytes + Tile::PanelB::kBytes;
template <class Tile>
inline constexpr int kRingBytes = Tile::kStages* kStageBytes<Tile>;

// Adds the product of `blocks` blocks of K. kWeightsFirst: B does not depend on the launches before this one, so that
// its first blocks are fetched while those still run. The ring is free for other use on return. A tile that reads ahead
// gets the fragments of step s + 1 while it multiplies step s; its last step reads the next block's first. Loaders are
// asked for blocks past the last too, and give zeros then: a branch would keep their code out of the multiplications. A
// loader may finish what its own thread copied before the other threads see it.
template <bool kWeightsFirst, class Tile, class LoaderA, class LoaderB>
LATHE_DEVICE void main_loop(Tile& tile, LoaderA& a, LoaderB& b, int blocks, char* ring) {
  constexpr int kStages = Tile::kStages, kSteps = Tile::kSteps, kA = Tile::PanelA::kBytes;
  const auto slot = [&](int stage) { return ring + stage * kStageBytes<Tile>; };
  if constexpr (!kWeightsFirst) dependency_wait();
  for (int stage = 0; stage < kStages - 1; ++stage) b.fetch(slot(stage) + kA, stage < blocks);
  if constexpr (kWeightsFirst) dependency_wait();
  for (int stage = 0; stage < kStages - 1; ++stage) {
    a.fetch(slot(stage), stage < blocks);
    a.place(slot(stage));
    b.place(slot(stage) + kA);
    copy_async_commit();
  }
  copy_async_wait<kStages - 2>();
  a.finish(slot(0));
  barrier();

  typename Tile::Fragments fragments[Tile::kBuffers];
  if constexpr (Tile::kAhead) Tile::load(fragments[0], slot(0), slot(0) + kA, 0);
  int reading = 0, writing = kStages - 1;
  for (int block = 0; block < blocks; ++block) {
    const bool more = block + kStages - 1 < blocks;
    const auto turn = [&] {  // to the next block
      a.place(slot(writing));
      b.place(slot(writing) + kA);
      writing = reading;
      reading = reading + 1 == kStages ? 0 : reading + 1;
      copy_async_wait<kStages - 2>();
      a.finish(slot(reading));
      barrier();
    };
    LATHE_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      if (Tile::kAhead && step == kSteps - 1) turn();
      const int next = Tile::kAhead ? step + 1 : step;
      Tile::load(fragments[next % Tile::kBuffers], slot(reading), slot(reading) + kA, next % kSteps);
      if (step == 0) {
        a.fetch(slot(writing), more);
        b.fetch(slot(writing) + kA, more);
        copy_async_commit();
      }
      tile.multiply(fragments[step % Tile::kBuffers]);
      if (!Tile::kAhead && step == kSteps - 1) turn();
    }
  }
  copy_async_wait<0>();
  barrier();
}

}  // namespace gemm
