// SPDX-License-Identifier: Apache-2.0
// Attention by blocks that stay: one warp asks the copy engine for queries, keys and values, groups of four warps have
// 64 queries each. While a group makes weights of scores, others have the matrix units, as in FlashAttention-3 (Shah
// and others, 2024); of small heads there are four groups, for it is weights that take most of the time.
#pragma once

#include "attention/logits.cuh"
#include "attention_pipeline/group.cuh"
#include "attention_pipeline/turned_values.cuh"
#include "gemm/pipeline.cuh"

namespace attention_pipeline {

// Which queries a number stands for, and which tiles of keys they see.
struct Work {
  int batch, head, query, first, end;
  LATHE_DEVICE_MEMBER int tiles() const { return end - first; }
};

// Numbers go through all tiles of queries of `section` heads, whose keys and values stay in the last cache, before
// those of the next ones. Where later queries see more keys, they come first, so that blocks end at about the same
// time.
template <class Shape, bool kLongestFirst, class Q, class Logits>
LATHE_DEVICE Work work_of(unsigned number, unsigned section, const Q& q, const Logits& logits) {
  const unsigned heads = static_cast<unsigned>(q.dim(1)), all = static_cast<unsigned>(q.dim(0)) * heads;
  const unsigned tiles = static_cast<unsigned>((q.dim(2) + Shape::kQueries - 1) / Shape::kQueries);
  const unsigned first = number / (section * tiles) * section, rest = number % (section * tiles);
  const unsigned here = all - first < section ? all - first : section;
  const unsigned head = first + rest % here, tile = kLongestFirst ? tiles - 1 - rest / here : rest / here;
  const int query = static_cast<int>(tile) * Shape::kQueries;
  const long end = logits.seen.end_of(query + Shape::kQueries - 1);
  return {static_cast<int>(head / heads), static_cast<int>(head % heads), query,
          static_cast<int>(logits.seen.first_of(query) / Shape::kKeys),
          end <= 0 ? 0 : static_cast<int>((end + Shape::kKeys - 1) / Shape::kKeys)};
}

// Where the rows of a head begin in a tensor map: elements and rows come first.
template <int R>
struct MapPlace {
  int at[R];
};

// The place of a head of queries, of keys or of values, by the numbers of batch and head.
template <class Place>
struct Copied {
  const TensorMap* map;
  Place place;
};
template <class Place>
LATHE_DEVICE Copied<Place> copied(const TensorMap* map, const Place& place) {
  return {map, place};
}

// Asks for kRows rows from `row` on, in panels of kPanel elements.
template <int kRows, int kPanels, int kPanel, class Place>
LATHE_DEVICE void copy_rows(char* to, const Copied<Place>& from, int batch, int head, int row, PhaseBarrier filled) {
  constexpr uint16 kThisBlock = 0;
  auto place = from.place(batch, head);
  place.at[1] = row;
  phase_barrier_expect(filled, kPanels * kRows * 128);
  LATHE_UNROLL
  for (int panel = 0; panel < kPanels; ++panel) {
    place.at[0] = panel * kPanel;
    copy_tensor(to + panel * kRows * 128, from.map, place.at, filled, kThisBlock);
  }
}

// One thread. Groups take tiles of keys from the last to the first.
template <class Shape, class Works, class Queries, class Keys, class Values>
LATHE_DEVICE void produce(const Memory<Shape>& memory, unsigned works, const Works& work_at, int shared_heads,
                          const Queries& queries, const Keys& keys, const Values& values) {
  Ring<Shape> ring;
  uint32 parity = 1;
  dependency_wait();
  for (unsigned number = static_cast<unsigned>(block_x()); number < works; number += static_cast<unsigned>(grid_x())) {
    const Work work = work_at(number);
    if (work.tiles() == 0) continue;
    phase_barrier_wait(memory.queries_empty(), parity);
    parity ^= 1;
    copy_rows<Shape::kQueries, Shape::kPanels, Shape::kPanel>(memory.queries(), queries, work.batch, work.head,
                                                              work.query, memory.queries_filled());
    const int head = work.head / shared_heads;
    LATHE_NO_UNROLL
    for (int tile = work.end; tile-- > work.first; ring.next()) {
      const int key = tile * Shape::kKeys;
      phase_barrier_wait(memory.keys_empty(ring.at), ring.parity ^ 1);
      copy_rows<Shape::kKeys, Shape::kPanels, Shape::kPanel>(memory.keys(ring.at), keys, work.batch, head, key,
                                                             memory.keys_filled(ring.at));
      phase_barrier_wait(memory.values_empty(ring.at), ring.parity ^ 1);
      copy_rows<Shape::kKeys, Shape::kValuePanels, Shape::kPanel>(memory.values(ring.at), values, work.batch, head, key,
                                                                  memory.values_filled(ring.at));
    }
  }
}

// A group's part of one work: values of a tile by their weights together with the next tile's scores, which come first
// where groups begin in turns: each was the faster. While weights are made, other groups have the matrix units.
template <bool kLinear, class Shape, class Logits>
LATHE_DEVICE void attend(Group<Shape>& group, const Memory<Shape>& memory, Ring<Shape>& ring, Turns<Shape>& turns,
                         const Logits& logits, const Work& work) {
  float s[Shape::kKeys / 8][4];
  long key = static_cast<long>(work.end - 1) * Shape::kKeys;
  bool is_shown = true;
  const auto look = [&] {  // while products are on their way
    if constexpr (kLinear) is_shown = logits.template shows_all<Shape::kKeys>(work.batch, work.head, key);
  };
  const auto to_logits = [&] {
    release(memory.keys_empty(ring.at));
    return group.template to_logits<kLinear>(s, logits, work.batch, work.head, work.query, key, is_shown);
  };
  phase_barrier_wait(memory.keys_filled(ring.at), ring.parity);
  group.multiply_keys(s, ring.at);
  look();
  wgmma_wait<0>();
  pin_sums(s);
  group.template make_weights<true>(logits, s, to_logits());
  LATHE_NO_UNROLL
  for (int left = work.tiles() - 1; left > 0; --left) {
    key -= Shape::kKeys;
    const Ring<Shape> before = ring;
    ring.next();
    phase_barrier_wait(memory.values_filled(before.at), before.parity);
    phase_barrier_wait(memory.keys_filled(ring.at), ring.parity);
    turns.wait(memory);
    if constexpr (!Turns<Shape>::kAre) group.multiply_values(before.at);
    group.multiply_keys(s, ring.at);
    if constexpr (Turns<Shape>::kAre) group.multiply_values(before.at);
    turns.pass(memory);
    look();
    wgmma_wait<0>();
    pin_sums(s);
    pin_sums(group.acc[0]);
    release(memory.values_empty(before.at));
    group.template make_weights<false>(logits, s, to_logits());
  }
  release(memory.queries_empty());
  phase_barrier_wait(memory.values_filled(ring.at), ring.parity);
  group.multiply_values(ring.at);
  wgmma_wait<0>();
  pin_sums(group.acc[0]);
  release(memory.values_empty(ring.at));
  ring.next();
}

// The same of 8-bit floats: scores are begun before the products of the values of the tile before, which go on while
// weights are made of the scores. The next keys are waited for before those products. The compiler does not move the
// wait for products ahead of that one, which is a loop, and so not ahead of the weights before it.
template <bool kLinear, class Shape, class Logits>
LATHE_DEVICE void attend_float8(Group<Shape>& group, const Memory<Shape>& memory, Ring<Shape>& ring,
                                Turns<Shape>& turns, const Logits& logits, const Work& work) {
  float s[Shape::kKeys / 8][4], factors[2];
  long key = static_cast<long>(work.end - 1) * Shape::kKeys;
  const auto weigh = [&](bool is_shown) {
    const float unit = group.template to_logits<kLinear>(s, logits, work.batch, work.head, work.query, key, is_shown);
    group.exponentiate_float8(logits, s, factors, unit);
  };
  bool is_shown = !kLinear || logits.template shows_all<Shape::kKeys>(work.batch, work.head, key);
  Ring<Shape> before = ring;
  phase_barrier_wait(memory.keys_filled(ring.at), ring.parity);
  group.multiply_keys(s, ring.at);
  wgmma_wait<0>();
  pin_sums(s);
  release(memory.keys_empty(ring.at));
  weigh(is_shown);
  group.keep_float8_weights(s);
  ring.next();
  if (work.tiles() > 1) phase_barrier_wait(memory.keys_filled(ring.at), ring.parity);
  for (int left = work.tiles() - 1; left > 0; --left) {
    key -= Shape::kKeys;
    const int at = ring.at;
    turns.wait(memory);
    group.multiply_keys(s, at);
    phase_barrier_wait(memory.factors_filled(before.at), before.parity);
    group.multiply_values(before.at);
    turns.pass(memory);
    if constexpr (kLinear) is_shown = logits.template shows_all<Shape::kKeys>(work.batch, work.head, key);
    wgmma_wait<1>();
    pin_sums(s);
    release(memory.keys_empty(at));
    weigh(is_shown);
    const int used = before.at;
    before = ring;
    ring.next();
    if (left > 1) phase_barrier_wait(memory.keys_filled(ring.at), ring.parity);
    wgmma_wait<0>();
    release(memory.factors_empty(used));
    group.take_products(factors);
    group.keep_float8_weights(s);
  }
  release(memory.queries_empty());
  phase_barrier_wait(memory.factors_filled(before.at), before.parity);
  group.multiply_values(before.at);
  wgmma_wait<0>();
  release(memory.factors_empty(before.at));
  group.take_products({1.0f, 1.0f});
}

// Writes vectors of a head's rows, and what the fused program makes of them.
template <class Out, class Fusion>
struct HeadSink {
  static constexpr bool kSeveral = false;
  static constexpr int kAtOnce = Fusion::kAtOnce;
  const Out& y;
  const Fusion& fusion;
  long batch, head;

  template <int W>
  LATHE_DEVICE_MEMBER void put(float (&v)[W], long row, long column, int count) const {
    const long c[4] = {batch, head, row, column};
    fusion.template apply<3, W>(v, c, count);
    store<3, W>(y, c, v, count);
  }
};

// Registers go from the warp that asks for tiles to those that hold sums.
template <class Shape>
LATHE_DEVICE void take_share() {
  if constexpr (Shape::kGroups == 2) take_registers<232>();
  if constexpr (Shape::kGroups == 3) take_registers<160>();
  if constexpr (Shape::kGroups == 4) take_registers<112>();
}
template <class Shape>
LATHE_DEVICE void free_share() {
  if constexpr (Shape::kGroups == 2) free_registers<40>();
  if constexpr (Shape::kGroups >= 3) free_registers<32>();
}

// kLinear: logits are products times a positive number and what is added by distance or by key, but for those of hidden
// keys, which a mask hides from all queries alike.
template <class Shape, bool kLinear, class Works, class Queries, class Keys, class Values, class V, class Out,
          class Logits, class Fusion>
LATHE_DEVICE void run(long works, const Works& work_at, int shared_heads, const Queries& queries, const Keys& keys,
                      const Values& values, const V& v, const Out& y, const Logits& logits, const Fusion& fusion) {
  const Memory<Shape> memory(dynamic_shared());
  if constexpr (Shape::kFloat8) write_ones(memory);
  init_barriers(memory);
  if (warp() < Shape::kWarps) {
    take_share<Shape>();
    Ring<Shape> ring;
    const int number = shuffle_idx(warp() / 4, 0);
    Turns<Shape> turns(number);
    Group<Shape> group(memory, number);
    uint32 parity = 0;
    dependency_wait();
    for (unsigned number = static_cast<unsigned>(block_x()); number < static_cast<unsigned>(works);
         number += static_cast<unsigned>(grid_x())) {
      const Work work = work_at(number);
      group.clear();
      if (work.tiles() > 0) {
        phase_barrier_wait(memory.queries_filled(), parity);
        parity ^= 1;
        if constexpr (Shape::kFloat8)
          attend_float8<kLinear>(group, memory, ring, turns, logits, work);
        else
          attend<kLinear>(group, memory, ring, turns, logits, work);
      }
      group.finish(logits, work.head, v, {work.batch, work.head / shared_heads, 0, 0});
      const long row = work.query + (Shape::kGroups > 1 ? warp() / 4 * 64 : 0);
      const HeadSink<Out, Fusion> sink{y, fusion, work.batch, work.head};
      if constexpr (Shape::kFloat8)
        store_turned(group, sink, row, y.dim(2), y.dim(3));
      else
        gemm::store_quads<Shape::kValueColumns % 32 == 0 ? 8 : 4, true, Fusion::kShort>(group, sink, row, y.dim(2), 0,
                                                                                        y.dim(3));
    }
  } else {
    free_share<Shape>();
    if (warp() == Shape::kWarps && lane() == 0)
      produce(memory, static_cast<unsigned>(works), work_at, shared_heads, queries, keys, values);
    else if (Shape::kFloat8 && warp() > Shape::kWarps)
      turn_values(memory, static_cast<unsigned>(works), work_at, warp() - Shape::kWarps - 1);
    else
      dependency_wait();
    warp_barrier();
  }
}

}  // namespace attention_pipeline
