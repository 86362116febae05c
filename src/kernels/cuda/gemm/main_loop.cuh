// SPDX-License-Identifier: Apache-2.0
// The main loop of every matrix product: a ring of panels in shared memory that loaders fill while a tile multiplies.
#pragma once

#include "gemm/promotion.cuh"

namespace gemm {

template <class Tile>
inline constexpr int kStageBytes = Tile::PanelA::kBytes + Tile::PanelB::kBytes;

// The panel of the ring's slot for A; B's is behind it.
template <class Tile>
LATHE_DEVICE char* panel_of(char* ring, int slot) {
  return ring + slot * kStageBytes<Tile>;
}

// When the next launch may begin, of a product that has many blocks: before this one loads anything, where reading B
// takes the time, so that the next launch's weights come without a pause; when the sums are there, so that it is in
// place when this one ends; or when this one ends, for its blocks would crowd where this one's end first.
enum class NextBegins { kAtOnce, kWhenSummed, kAtTheEnd };

// Asks the loaders for all but the last of the ring's panels, the first `blocks` of which exist. kWeightsFirst: B does
// not depend on the launches before this one, so that its panels are fetched while those still run.
template <bool kWeightsFirst, NextBegins kNext, class Tile, class LoaderA, class LoaderB>
LATHE_DEVICE void fill_ring(LoaderA& a, LoaderB& b, int blocks, char* ring) {
  constexpr int kA = Tile::PanelA::kBytes;
  if constexpr (kNext == NextBegins::kAtOnce) let_next_begin();
  if constexpr (!kWeightsFirst) wait_for_results();
  for (int stage = 0; stage < Tile::kStages - 1; ++stage) b.fetch(panel_of<Tile>(ring, stage) + kA, stage < blocks);
  if constexpr (kWeightsFirst) wait_for_results();
  if (kNext != NextBegins::kAtOnce && has_few_blocks()) let_next_begin();
  for (int stage = 0; stage < Tile::kStages - 1; ++stage) {
    char* panel = panel_of<Tile>(ring, stage);
    a.fetch(panel, stage < blocks);
    a.place(panel);
    b.place(panel + kA);
    copy_async_commit();
  }
}

// The panels of a block are there, for all threads.
template <class Tile, class LoaderA>
LATHE_DEVICE void finish_panel(LoaderA& a, char* panel) {
  a.finish(panel);
  if constexpr (Tile::kAsynchronous) matrix_units_fence();
  barrier();
}

// A tile that multiplies while its threads go on: a block's panels are free once the next block has begun, and the one
// before it is done in all threads.
template <class Tile, class LoaderA, class LoaderB>
LATHE_DEVICE void multiply_asynchronously(Tile& tile, LoaderA& a, LoaderB& b, int blocks, char* ring) {
  constexpr int kStages = Tile::kStages, kA = Tile::PanelA::kBytes;
  static_assert(kStages >= 3, "a panel is read, one is free, one is on its way");
  int reading = 0, writing = kStages - 1;
  for (int block = 0; block < blocks; ++block) {
    tile.multiply(panel_of<Tile>(ring, reading), panel_of<Tile>(ring, reading) + kA);
    wait_for_panels<1>(tile);
    const int next = reading + 1 == kStages ? 0 : reading + 1;
    copy_async_wait<kStages - 3>();
    finish_panel<Tile>(a, panel_of<Tile>(ring, next));
    char* panel = panel_of<Tile>(ring, writing);
    a.fetch(panel, block + kStages - 1 < blocks);
    b.fetch(panel + kA, block + kStages - 1 < blocks);
    a.place(panel);
    b.place(panel + kA);
    copy_async_commit();
    writing = reading;
    reading = next;
  }
  wgmma_wait<0>();
}

// A tile that reads ahead gets the fragments of step s + 1 while it multiplies step s; its last step reads the next
// block's first.
template <class Tile, class LoaderA, class LoaderB>
LATHE_DEVICE void multiply_fragments(Tile& tile, LoaderA& a, LoaderB& b, int blocks, char* ring) {
  constexpr int kStages = Tile::kStages, kSteps = Tile::kSteps, kA = Tile::PanelA::kBytes;
  typename Tile::Fragments fragments[Tile::kBuffers];
  if constexpr (Tile::kAhead) Tile::load(fragments[0], ring, ring + kA, 0);
  int reading = 0, writing = kStages - 1;
  for (int block = 0; block < blocks; ++block) {
    const bool more = block + kStages - 1 < blocks;
    const auto turn = [&] {  // to the next block
      a.place(panel_of<Tile>(ring, writing));
      b.place(panel_of<Tile>(ring, writing) + kA);
      writing = reading;
      reading = reading + 1 == kStages ? 0 : reading + 1;
      copy_async_wait<kStages - 2>();
      finish_panel<Tile>(a, panel_of<Tile>(ring, reading));
    };
    LATHE_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      if (Tile::kAhead && step == kSteps - 1) turn();
      const int next = Tile::kAhead ? step + 1 : step;
      const char* panel = panel_of<Tile>(ring, reading);
      Tile::load(fragments[next % Tile::kBuffers], panel, panel + kA, next % kSteps);
      if (step == 0) {
        a.fetch(panel_of<Tile>(ring, writing), more);
        b.fetch(panel_of<Tile>(ring, writing) + kA, more);
        copy_async_commit();
      }
      tile.multiply(fragments[step % Tile::kBuffers]);
      if (!Tile::kAhead && step == kSteps - 1) turn();
    }
  }
}

// Adds the product of `blocks` blocks of K. The ring is free for other use on return. Loaders are asked for blocks past
// the last too, and give zeros then: a branch would keep their code out of the multiplications. A loader may finish
// what its own thread copied before the other threads see it.
template <bool kWeightsFirst, NextBegins kNext, class Tile, class LoaderA, class LoaderB>
LATHE_DEVICE void main_loop(Tile& tile, LoaderA& a, LoaderB& b, int blocks, char* ring) {
  fill_ring<kWeightsFirst, kNext, Tile>(a, b, blocks, ring);
  copy_async_wait<Tile::kStages - 2>();
  finish_panel<Tile>(a, ring);
  if constexpr (Tile::kAsynchronous)
    multiply_asynchronously(tile, a, b, blocks, ring);
  else
    multiply_fragments(tile, a, b, blocks, ring);
  if constexpr (kNext == NextBegins::kWhenSummed) let_next_begin();
  copy_async_wait<0>();
  barrier();
}

}  // namespace gemm
