// SPDX-License-Identifier: Apache-2.0
// Products by blocks that stay: one warp asks the copy engine for panels, groups of four warps multiply them, and all
// go from tile to tile, so that the panels of the next are on their way while the sums of one are finished. Two groups
// may take tiles in turns: one multiplies while the other finishes ("ping-pong" in CUTLASS).
#pragma once

#include "gemm/gemm.cuh"
#include "gemm/pipeline_tile.cuh"
#include "gemm/store_quads.cuh"

namespace gemm {

// Where the tile of a block's matrices begins in a tensor map: K and M or N come first, then the batch.
template <int R>
struct MapPlace {
  int at[R];
};

// The ring of panels and its phase barriers: for each slot, that it is filled, and that it is empty; for each of two
// groups, that the matrix units are its own. The host counts their bytes, too (kSlotBarrierBytes, kTurnBytes of
// tile_tactic.cpp). What warps write along rows comes last.
template <class Tile>
struct PipelineMemory {
  char* shared;

  LATHE_DEVICE_MEMBER char* a(int slot) const { return shared + slot * kStageBytes<Tile>; }
  LATHE_DEVICE_MEMBER char* b(int slot) const { return a(slot) + Tile::PanelA::kBytes; }
  LATHE_DEVICE_MEMBER uint64* filled(int slot) const {
    return reinterpret_cast<uint64*>(shared + Tile::kStages * kStageBytes<Tile>) + slot;
  }
  LATHE_DEVICE_MEMBER uint64* empty(int slot) const { return filled(slot) + Tile::kStages; }
  LATHE_DEVICE_MEMBER uint64* turn(int group) const { return filled(group) + 2 * Tile::kStages; }
};

// A place in the ring; `parity` is that of the round.
template <class Tile>
struct Slot {
  int at = 0;
  uint32 parity = 0;
  LATHE_DEVICE_MEMBER void next() {
    if (++at < Tile::kStages) return;
    at = 0;
    parity ^= 1;
  }
  LATHE_DEVICE_MEMBER void skip(int slots) {  // what another group reads
    const int rounds = (at + slots) / Tile::kStages;
    at += slots - rounds * Tile::kStages;
    parity ^= rounds & 1;
  }
};

// Which of two groups multiplies; the first one begins, as its parity is that of the phase before the barrier's first.
// Where groups skip slots, the wait for the turn must come before the one for a slot: only then no slot is more than a
// phase behind, which its parity could not tell.
template <class Tile>
struct Turn {
  int group;
  uint32 parity = group == 0 ? 1 : 0;

  LATHE_DEVICE_MEMBER void wait(const PipelineMemory<Tile>& memory) {
    phase_barrier_wait(memory.turn(group), parity);
    parity ^= 1;
  }
  LATHE_DEVICE_MEMBER void pass(const PipelineMemory<Tile>& memory) const {
    if (lane() == 0) phase_barrier_arrive(memory.turn(1 - group));
  }
};

// What a launch multiplies. `work` says which tile a number means; places are functions of a tile.
template <class Work, class PlaceA, class PlaceB>
struct PipelineProduct {
  const TensorMap *map_a, *map_b;
  unsigned works;
  Work work;
  PlaceA place_a;
  PlaceB place_b;
};
template <class Work, class PlaceA, class PlaceB>
LATHE_DEVICE PipelineProduct<Work, PlaceA, PlaceB> pipeline_product(const TensorMap* map_a, const TensorMap* map_b,
                                                                    long works, const Work& work, const PlaceA& place_a,
                                                                    const PlaceB& place_b) {
  return {map_a, map_b, static_cast<unsigned>(works), work, place_a, place_b};
}

// The blocks of a launch that has as many as the device runs at once take tiles in turn; those of a cluster take tiles
// below each other.
template <class Tile>
LATHE_DEVICE Block work_of(unsigned work, long m, long n, long k, int splits) {
  constexpr unsigned kBand = 16;  // tiles, of blocks that stay
  constexpr int kRows = Tile::kM * Tile::kPeers;
  Block block = block_at<Tile, kRows, kBand / Tile::kPeers, false>(work, m, n, k, splits);
  if constexpr (Tile::kPeers > 1) block.row += cluster_rank() * Tile::kM;
  return block;
}

// The works of a block, or cluster, in turn.
template <class Tile>
LATHE_DEVICE unsigned first_work() {
  return static_cast<unsigned>(block_x()) / Tile::kPeers;
}
template <class Tile>
LATHE_DEVICE unsigned works_at_once() {
  return static_cast<unsigned>(grid_x()) / Tile::kPeers;
}
template <class Tile, class Product, class Each>
LATHE_DEVICE void for_each_work(const Product& product, const Each& each) {
  for (unsigned work = first_work<Tile>(); work < product.works; work += works_at_once<Tile>()) each(work);
}

// Asks for the elements [outer, outer + kOuter) of M or N of a panel. kNeighbours: the map has groups of 4 times as
// many for its last dimension.
template <class Panel, bool kMnMajor, int kNeighbours, int kOuter, int R>
LATHE_DEVICE void copy_panel(char* panel, const TensorMap* map, MapPlace<R> place, long outer, long k, uint64* barrier,
                             uint16 peers) {
  place.at[kMnMajor ? 1 : 0] = static_cast<int>(k);
  constexpr int kOuterWithK = kNeighbours > 0 ? R - 1 : 1, kOuterDim = kMnMajor ? 0 : kOuterWithK;
  place.at[kOuterDim] = static_cast<int>(kNeighbours > 0 ? outer / (4 * kNeighbours) : outer);
  if constexpr (kMnMajor) {
    LATHE_UNROLL
    for (int first = 0; first < kOuter; first += Panel::kElements) {
      place.at[0] = static_cast<int>(outer) + first;
      copy_tensor(panel + first / Panel::kElements * Panel::kBlockBytes, map, place.at, barrier, peers);
    }
  } else {
    copy_tensor(panel, map, place.at, barrier, peers);
  }
}

template <class Tile, int R>
LATHE_DEVICE void copy_a(const PipelineMemory<Tile>& memory, int slot, const TensorMap* map, const MapPlace<R>& place,
                         const Block& block, int i) {
  copy_panel<typename Tile::PanelA, Tile::kMnMajorA, 0, Tile::kM>(
      memory.a(slot), map, place, block.row, block.k + static_cast<long>(i) * Tile::kK, memory.filled(slot), 0);
}

// Announces the bytes of both panels, and asks for B.
template <class Tile, int R>
LATHE_DEVICE void copy_b(const PipelineMemory<Tile>& memory, int slot, const TensorMap* map, const MapPlace<R>& place,
                         const Block& block, int i) {
  constexpr int kPart = Tile::kN / Tile::kPeers;
  const int first = Tile::kPeers > 1 ? cluster_rank() * kPart : 0;
  phase_barrier_expect(memory.filled(slot), kStageBytes<Tile>);
  copy_panel<typename Tile::PanelB, Tile::kMnMajorB, Tile::kNeighbours, kPart>(
      memory.b(slot) + first * 128, map, place, block.column + first, block.k + static_cast<long>(i) * Tile::kK,
      memory.filled(slot), Tile::kPeers > 1 ? (1 << Tile::kPeers) - 1 : 0);
}

// One thread. kWeightsFirst: B does not depend on the launches before this one. The next launch may begin when the last
// panels have been asked for: it asks for its own while these are multiplied.
template <bool kWeightsFirst, class Tile, class Product>
LATHE_DEVICE void produce(const PipelineMemory<Tile>& memory, const Product& product) {
  Slot<Tile> slot;
  const unsigned first = first_work<Tile>();
  if constexpr (!kWeightsFirst) wait_for_results();
  for (unsigned work = first; work < product.works; work += works_at_once<Tile>()) {
    const Block block = product.work(work);
    const auto place_a = product.place_a(block);
    const auto place_b = product.place_b(block);
    int ahead = 0;
    if (kWeightsFirst && work == first) {
      ahead = block.blocks < Tile::kStages ? block.blocks : Tile::kStages;
      for (int i = 0; i < ahead; ++i) copy_b(memory, i, product.map_b, place_b, block, i);
      wait_for_results();
    }
    LATHE_NO_UNROLL
    for (int i = 0; i < block.blocks; ++i) {
      phase_barrier_wait(memory.empty(slot.at), slot.parity ^ 1);
      if (i >= ahead) copy_b(memory, slot.at, product.map_b, place_b, block, i);
      copy_a(memory, slot.at, product.map_a, place_a, block, i);
      slot.next();
    }
  }
  let_next_begin();
}

// A warp has read a slot: in all blocks that bring parts of it.
template <class Tile>
LATHE_DEVICE void release(uint64* empty) {
  if constexpr (Tile::kPeers == 1) {
    if (lane() == 0) phase_barrier_arrive(empty);
  } else {
    if (lane() < Tile::kPeers) phase_barrier_arrive(empty, lane());
  }
}

// A turn is passed on when a group's last products of a tile have begun, and not when they are done, so that the matrix
// units do not wait.
template <class Tile>
LATHE_DEVICE void consume(Tile& tile, const PipelineMemory<Tile>& memory, Slot<Tile>& slot, Turn<Tile>& turn,
                          int blocks) {
  const int first = Tile::kTurns ? 0 : turn.group * 64;
  int before = 0;
  if constexpr (Tile::kTurns) turn.wait(memory);
  for (int i = 0; i < blocks; ++i) {
    phase_barrier_wait(memory.filled(slot.at), slot.parity);
    tile.multiply(memory.a(slot.at), memory.b(slot.at), first);
    wgmma_wait<1>();
    if (i > 0) release<Tile>(memory.empty(before));
    before = slot.at;
    slot.next();
  }
  if constexpr (Tile::kTurns) turn.pass(memory);
  wgmma_wait<0>();
  if (blocks > 0) release<Tile>(memory.empty(before));
}

// A part of the columns of a panel that is there, of a tile that sums it up apart. `meanwhile` runs while the matrix
// units do.
template <int kPart, class Tile, class Meanwhile>
LATHE_DEVICE void consume_part(Tile& tile, const PipelineMemory<Tile>& memory, int slot, int group,
                               const Meanwhile& meanwhile) {
  tile.multiply(memory.a(slot), memory.b(slot), group * 64, kPart);
  meanwhile(kPart);
  if constexpr (kPart == 0) tile.prepare_panel();
  wgmma_wait<0>();
  if constexpr (kPart == Tile::kParts - 1) release<Tile>(memory.empty(slot));
  tile.add_panel(kPart);
}
template <class Tile, class Meanwhile>
LATHE_DEVICE void consume_panel(Tile& tile, const PipelineMemory<Tile>& memory, Slot<Tile>& slot, int group,
                                const Meanwhile& meanwhile) {
  phase_barrier_wait(memory.filled(slot.at), slot.parity);
  consume_part<0>(tile, memory, slot.at, group, meanwhile);
  if constexpr (Tile::kParts == 2) consume_part<1>(tile, memory, slot.at, group, meanwhile);
  slot.next();
}
template <class Tile>
LATHE_DEVICE void consume_panels(Tile& tile, const PipelineMemory<Tile>& memory, Slot<Tile>& slot, int group,
                                 int blocks) {
  for (int i = 0; i < blocks; ++i) consume_panel(tile, memory, slot, group, [](int) {});
}

template <class Tile>
LATHE_DEVICE void init_barriers(const PipelineMemory<Tile>& memory) {
  if (thread_x() == 0) {
    for (int slot = 0; slot < Tile::kStages; ++slot) {
      phase_barrier_init(memory.filled(slot), 1);
      phase_barrier_init(memory.empty(slot), Tile::kReaders * Tile::kPeers);
    }
    for (int group = 0; group < 2; ++group) phase_barrier_init(memory.turn(group), 4);
    phase_barrier_fence();
  }
  if constexpr (Tile::kPeers > 1) {
    cluster_arrive();
    cluster_wait();
  } else {
    barrier();
  }
}

struct BeginsPlainly {
  template <class Tile>
  LATHE_DEVICE_MEMBER void operator()(Tile&, const Block&) const {}
};

// The tiles of a group whose panels are summed up by the matrix units.
template <class Tile, class Product, class Finish, class Begin>
LATHE_DEVICE void run_tiles(const PipelineMemory<Tile>& memory, const Product& product, const Finish& finish,
                            const Begin& begin) {
  Slot<Tile> slot;
  Turn<Tile> turn{warp() / 4};
  Tile tile;
  int taker = 0;
  for_each_work<Tile>(product, [&](unsigned work) {
    Block block = product.work(work);
    const bool is_own = !Tile::kTurns || taker == turn.group;
    taker ^= 1;
    if (!is_own) return slot.skip(block.blocks);
    if constexpr (!Tile::kTurns) block.row += turn.group * 64;
    tile.clear();
    begin(tile, block);
    consume(tile, memory, slot, turn, block.blocks);
    finish(tile.sums[0], block);
  });
}

// Those of a group that adds up panels itself.
template <class Tile, class Product, class Finish, class Begin>
struct PromotedTiles {
  const PipelineMemory<Tile>& memory;
  const Product& product;
  const Finish& finish;
  const Begin& begin;
  int group;
  Slot<Tile> slot;
  Tile tile;

  LATHE_DEVICE_MEMBER void run() {
    for_each_work<Tile>(product, [&](unsigned work) {
      const Block block = start(work);
      tile.clear();
      consume_panels(tile, memory, slot, group, block.blocks);
      finish_all(block);
    });
  }

  // Finishes a part of a tile while the matrix units multiply that part of the next tile's first panel: each has one.
  LATHE_DEVICE_MEMBER void run_ahead() {
    const unsigned step = works_at_once<Tile>();
    unsigned work = first_work<Tile>();
    if (work >= product.works) return;
    Block block = start(work);
    tile.clear();
    consume_panels(tile, memory, slot, group, block.blocks);
    for (work += step; work < product.works; work += step) {
      const Block before = block;
      block = start(work);
      consume_panel(tile, memory, slot, group, [&](int part) {
        finish_part(before, part);
        clear_sums(tile.sums[part].acc);
        pin_sums(tile.sums[part].acc[0]);  // else registers change places, of which there are not enough
      });
      consume_panels(tile, memory, slot, group, block.blocks - 1);
    }
    finish_all(block);
  }

 private:
  LATHE_DEVICE_MEMBER Block start(unsigned work) {
    Block block = product.work(work);
    block.row += group * 64;
    begin(tile, block);
    return block;
  }
  LATHE_DEVICE_MEMBER void finish_part(Block block, int part) {
    block.column += part * Tile::kPartN;
    finish(tile.sums[part], block);
  }
  LATHE_DEVICE_MEMBER void finish_all(const Block& block) {
    LATHE_UNROLL
    for (int part = 0; part < Tile::kParts; ++part) finish_part(block, part);
  }
};

// `begin` gets each tile, and `finish` the sums of each part of its columns, with their block, from the group's rows
// on. kAhead: as PromotedTiles::run_ahead(), whose sums begin with the first panel of K. Registers go from the warps
// that ask for panels to those that hold sums.
template <class Tile, bool kWeightsFirst, bool kAhead, class Product, class Finish, class Begin = BeginsPlainly>
LATHE_DEVICE void run_pipeline(const Product& product, char* shared, const Finish& finish, const Begin& begin = {}) {
  const PipelineMemory<Tile> memory{shared};
  init_barriers(memory);
  if (warp() < Tile::kConsumers) {
    if constexpr (Tile::kGroups == 2) take_registers<232>();
    wait_for_results();
    if constexpr (kPromotes<typename Tile::Element>) {
      PromotedTiles<Tile, Product, Finish, Begin> tiles{memory, product, finish, begin, warp() / 4};
      if constexpr (kAhead)
        tiles.run_ahead();
      else
        tiles.run();
    } else {
      run_tiles(memory, product, finish, begin);
    }
  } else {
    if constexpr (Tile::kGroups == 2) free_registers<40>();
    if (warp() == Tile::kConsumers && lane() == 0)
      produce<kWeightsFirst>(memory, product);
    else
      wait_for_results();
    warp_barrier();
  }
  if constexpr (Tile::kPeers > 1) {  // whose parts may still be on their way to the others
    cluster_arrive();
    cluster_wait();
  }
}

}  // namespace gemm
