// SPDX-License-Identifier: Apache-2.0
// Products by blocks that stay: one warp asks the copy engine for panels, groups of four warps multiply them, and all
// go from tile to tile, so that the panels of the next are on their way while the sums of one are finished. Two groups
// may take tiles in turns: one multiplies while the other finishes ("ping-pong" in CUTLASS).
#pragma once

#include "gemm/gemm.cuh"
#include "gemm/pipeline_tile.cuh"
#include "gemm/row_sink.cuh"

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

// What a launch multiplies. `work` says which tile a number means; places are functions of the batch.
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

// Asks for the elements [outer, outer + kOuter) of M or N of a panel. kNeighbours: the map has groups of 32 of them for
// its last dimension.
template <class Panel, bool kMnMajor, bool kNeighbours, int kOuter, int R>
LATHE_DEVICE void copy_panel(char* panel, const TensorMap* map, MapPlace<R> place, long outer, long k, uint64* barrier,
                             uint16 peers) {
  place.at[kMnMajor ? 1 : 0] = static_cast<int>(k);
  place.at[kMnMajor ? 0 : kNeighbours ? R - 1 : 1] = static_cast<int>(kNeighbours ? outer / 32 : outer);
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
  copy_panel<typename Tile::PanelA, Tile::kMnMajorA, false, Tile::kM>(
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

// One thread. kWeightsFirst: B does not depend on the launches before this one.
template <bool kWeightsFirst, class Tile, class Product>
LATHE_DEVICE void produce(const PipelineMemory<Tile>& memory, const Product& product) {
  Slot<Tile> slot;
  const unsigned step = static_cast<unsigned>(grid_x()) / Tile::kPeers,
                 first = static_cast<unsigned>(block_x()) / Tile::kPeers;
  if constexpr (!kWeightsFirst) dependency_wait();
  for (unsigned work = first; work < product.works; work += step) {
    const Block block = product.work(work);
    const auto place_a = product.place_a(block.batch);
    const auto place_b = product.place_b(block.batch);
    int ahead = 0;
    if (kWeightsFirst && work == first) {
      ahead = block.blocks < Tile::kStages ? block.blocks : Tile::kStages;
      for (int i = 0; i < ahead; ++i) copy_b(memory, i, product.map_b, place_b, block, i);
      dependency_wait();
    }
    LATHE_NO_UNROLL
    for (int i = 0; i < block.blocks; ++i) {
      phase_barrier_wait(memory.empty(slot.at), slot.parity ^ 1);
      if (i >= ahead) copy_b(memory, slot.at, product.map_b, place_b, block, i);
      copy_a(memory, slot.at, product.map_a, place_a, block, i);
      slot.next();
    }
  }
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

// A turn is passed on when a group's last products, of a tile or of a panel, have begun, and not when they are done, so
// that the matrix units do not wait.
template <class Tile>
LATHE_DEVICE void consume(Tile& tile, const PipelineMemory<Tile>& memory, Slot<Tile>& slot, Turn<Tile>& turn,
                          int blocks) {
  const int first = Tile::kTurns ? 0 : turn.group * 64;
  int before = 0;
  if constexpr (Tile::kTurns) turn.wait(memory);
  for (int i = 0; i < blocks; ++i) {
    phase_barrier_wait(memory.filled(slot.at), slot.parity);
    if constexpr (Tile::kTurnsByPanel) turn.wait(memory);
    tile.multiply(memory.a(slot.at), memory.b(slot.at), first);
    if constexpr (Tile::kTurnsByPanel) turn.pass(memory);
    wait_for_panels<1>(tile);
    if (i > 0) release<Tile>(memory.empty(before));
    before = slot.at;
    slot.next();
  }
  if constexpr (Tile::kTurns) turn.pass(memory);
  wgmma_wait<0>();
  if (blocks > 0) release<Tile>(memory.empty(before));
}

// Gives vectors to the sink: v[2 * i] of row `row`, v[2 * i + 1] of the one eight below, `step` columns after each
// other.
template <bool kWhole, int W, int N, class Sum, class Sink>
LATHE_DEVICE void sink_vectors(const Sink& sink, Sum (&v)[N][W], long row, long rows, long column, long columns,
                               int step) {
  long m[N], n[N];
  int count[N];
  bool wanted[N];
  LATHE_UNROLL
  for (int k = 0; k < N; ++k) {
    m[k] = row + k % 2 * 8, n[k] = column + k / 2 * step;
    wanted[k] = m[k] < rows && n[k] < columns;
    if (m[k] >= rows) m[k] = rows - 1;
    if (n[k] >= columns) n[k] = (columns - 1) / W * W;
    count[k] = kWhole ? W : min_of(columns - n[k], W);
  }
  if constexpr (Sink::kSeveral) {
    float values[N][W];
    LATHE_UNROLL
    for (int k = 0; k < N; ++k) LATHE_UNROLL
    for (int i = 0; i < W; ++i) values[k][i] = static_cast<float>(v[k][i]);
    if constexpr (kByRows<Sink>)
      sink.put_rows_of_warp(values, m, n, count, row, rows, column, columns, step);
    else
      sink.put_several(values, m, n, count, wanted);
  } else {
    LATHE_UNROLL
    for (int k = 0; k < N; ++k)
      if (wanted[k]) sink.put(v[k], m[k], n[k], count[k]);
  }
}

// Two threads, the `bit` of whose numbers differs, have a[0..C) and b[0..C) of different parts: afterwards the first
// has both parts of a, and the second of b.
template <int C, class Sum>
LATHE_DEVICE void exchange(Sum* a, Sum* b, int bit) {
  const bool second = (lane() & bit) != 0;
  LATHE_UNROLL
  for (int i = 0; i < C; ++i) {
    const Sum other = shuffle_xor(second ? a[i] : b[i], bit);
    if (second)
      a[i] = other;
    else
      b[i] = other;
  }
}

// Parts of a tile's sums, kAtOnce from `first` on: W neighbouring columns of two rows each for a thread. Four
// neighbouring threads have two columns of each 8 in a row, and exchange them, if they are no neighbours already.
template <int W, bool kWhole, bool kNeighbours, int kAtOnce, class Tile, class Sink>
LATHE_DEVICE void store_groups(const Tile& tile, int first, const Sink& sink, long row, long rows, long column,
                               long columns) {
  constexpr int kTiles = W / 2, kGroups = Tile::kN / 8 / kTiles;  // of 64 rows
  typename Tile::Accumulator v[2 * kAtOnce][W];
  LATHE_UNROLL
  for (int i = 0; i < Tile::kRowTiles * kGroups; ++i) {  // registers have no index
    if (i / kAtOnce * kAtOnce != first) continue;
    LATHE_UNROLL
    for (int t = 0; t < kTiles; ++t) LATHE_UNROLL
    for (int e = 0; e < 4; ++e)
      v[i % kAtOnce * 2 + e / 2][t * 2 + e % 2] = tile.acc[i / kGroups][i % kGroups * kTiles + t][e];
  }
  LATHE_UNROLL
  for (int k = 0; !kNeighbours && k < 2 * kAtOnce; ++k) {
    LATHE_UNROLL
    for (int pair = 0; pair < W / 4; ++pair) exchange<2>(v[k] + pair * 4, v[k] + pair * 4 + 2, 1);
    if constexpr (W == 8) exchange<4>(v[k], v[k] + 4, 2);
  }
  sink_vectors<kWhole>(sink, v, row + first / kGroups * 64, rows, column + first % kGroups * 8 * kTiles, columns,
                       8 * kTiles);
}

// Gives the sums that a group has, from `row` on, to the sink. The program stands in the code for each part of them
// when it is short; operands of several parts are on the way at the same time.
template <int W, bool kWhole, bool kShort, bool kNeighbours = false, class Tile, class Sink>
LATHE_DEVICE void store_quads(const Tile& tile, const Sink& sink, long row, long rows, long column, long columns) {
  static_assert(W == 2 || W == 4 || W == 8, "what two, or four, threads have of a row");
  static_assert(!kNeighbours || W == 8, "what a thread has of 32 columns");
  constexpr int kGroups = Tile::kRowTiles * Tile::kN / 4 / W;
  // Of two tiles of rows and narrow vectors, the places of as many need more registers than there are.
  constexpr bool kFit = Tile::kRowTiles == 1 || W == 8;
  constexpr int kAtOnce = Sink::kAtOnce >= 4 && kFit && Tile::kN / 4 / W % 2 == 0 ? 2 : 1;
  row += Tile::warp_row() + lane() / 4;
  column += column_of_four<W>();
  if constexpr (kShort) {
    LATHE_UNROLL
    for (int group = 0; group < kGroups; group += kAtOnce)
      store_groups<W, kWhole, kNeighbours, kAtOnce>(tile, group, sink, row, rows, column, columns);
  } else {
    LATHE_NO_UNROLL
    for (int group = 0; group < kGroups; group += kAtOnce)
      store_groups<W, kWhole, kNeighbours, kAtOnce>(tile, group, sink, row, rows, column, columns);
  }
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

// `begin` and `finish` get each tile with its block, from the group's rows on. Registers go from the warps that ask for
// panels to those that hold sums.
template <class Tile, bool kWeightsFirst, class Product, class Finish, class Begin = BeginsPlainly>
LATHE_DEVICE void run_pipeline(const Product& product, char* shared, const Finish& finish, const Begin& begin = {}) {
  const PipelineMemory<Tile> memory{shared};
  init_barriers(memory);
  if (warp() < Tile::kConsumers) {
    if constexpr (Tile::kGroups == 2) take_registers<232>();
    const unsigned step = static_cast<unsigned>(grid_x()) / Tile::kPeers;
    Slot<Tile> slot;
    Turn<Tile> turn{warp() / 4};
    Tile tile;
    int taker = 0;
    dependency_wait();
    for (unsigned work = static_cast<unsigned>(block_x()) / Tile::kPeers; work < product.works; work += step) {
      Block block = product.work(work);
      const bool is_own = !Tile::kTurns || taker == turn.group;
      taker ^= 1;
      if (!is_own) {
        slot.skip(block.blocks);
        continue;
      }
      if constexpr (!Tile::kTurns) block.row += turn.group * 64;
      tile.clear();
      begin(tile, block);
      consume(tile, memory, slot, turn, block.blocks);
      finish(tile, block);
    }
  } else {
    if constexpr (Tile::kGroups == 2) free_registers<40>();
    if (warp() == Tile::kConsumers && lane() == 0)
      produce<kWeightsFirst>(memory, product);
    else
      dependency_wait();
    warp_barrier();
  }
  if constexpr (Tile::kPeers > 1) {  // whose parts may still be on their way to the others
    cluster_arrive();
    cluster_wait();
  }
}

}  // namespace gemm
