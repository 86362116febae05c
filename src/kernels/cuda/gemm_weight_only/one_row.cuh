// SPDX-License-Identifier: Apache-2.0
// One row of f16 times packed integers. Tensor cores multiply 8 rows, of which 7 would be zeros: here each of them is
// the same row where one segment of K has a scale of its own, and 0 elsewhere. So the sums of segments come apart, and
// it is these that are scaled and freed of zero points, a few for each 16 codes; codes are multiplied as the subnormal
// numbers that their bits are. The row goes to registers at once, each element to one lane of a warp.
#pragma once

#include "gemm_weight_only/gemm_weight_only.cuh"

namespace weight_only {

// Segments of panels; kRound panels have 8.
template <int kBlock, int kK>
struct Segments {
  static constexpr bool kOne = kBlock >= kK;  // block of all K
  static constexpr int kLength = kOne || kBlock % 64 == 0 ? 64 : kBlock % 32 == 0 ? 32 : 16;
  static constexpr int kOfPanel = 64 / kLength, kRound = 8 / kOfPanel;
  static constexpr int kBlocks = (kK + kBlock - 1) / kBlock;
  // The block of a segment that begins at element `at`; what a panel has behind K takes the last one.
  LATHE_DEVICE_MEMBER static int block_at(int at) {
    return kOne ? 0 : at / kBlock < kBlocks ? at / kBlock : kBlocks - 1;
  }
};

// Of its `own` panels, how many a warp has in registers: all, or where those are more than `most` half as many, in
// turns, or some more where all turns are of as many then. With more the compiler, which loads a turn's rows and scales
// while the one before is multiplied, has too few registers.
LATHE_DEVICE constexpr int panels_ahead(int own, int most) {
  if (own <= most) return own;
  int ahead = most / 2;
  while (ahead < most && own % ahead != 0) ++ahead;
  return own % ahead == 0 ? ahead : most / 2;
}

// 16 columns for kWarps warps, which take panels of the kDepth elements of K in turn.
template <int kBits, bool kZeros, int kDepth, int kBlock, int kWarps, int kGroups, class Reader>
struct OneRowTile {
  static constexpr int kSlice = 16, kM = 1, kN = kSlice * kGroups, kK = 64, kThreads = 32 * kWarps * kGroups;
  static constexpr int kPanels = (kDepth + 63) / 64, kOwn = (kPanels + kWarps - 1) / kWarps;
  static constexpr int kAhead = panels_ahead(kOwn, 32 / kBits);
  using Parts = Segments<kBlock, kDepth>;
  static constexpr int kRound = Parts::kRound, kRounds = (kAhead + kRound - 1) / kRound;

  struct Codes {
    Vec<uint32, 4> words[kBits / 4];
  };
  // Of a round: of the lane's columns c and c + 8, in segments 2 * (lane % 4) and the next.
  struct Factors {
    Vec<f16, 2> scales[2], zeros[2];
  };

  float sums[2];  // of columns c and c + 8, of the lane's segments
  const uint32* codes;
  const f16 *scales, *zeros;
  int share;
  Codes ahead[kAhead];
  Factors factors[kRounds];

  LATHE_DEVICE_MEMBER void clear() { sums[0] = sums[1] = 0; }

  LATHE_DEVICE_MEMBER void run(const PackedWeights<f16>& weights, const typename Reader::Source& rows,
                               const gemm::Block& block, long n, int cached) {
    long column = block.column + warp() / kWarps * kSlice;
    if (kGroups > 1 && column >= n) column = block.column;  // whose sums nobody stores
    const long slice = column / kSlice, pair = slice * Parts::kBlocks * 16 + lane() / 4 * 2;
    share = kWarps == 1 ? 0 : warp() % kWarps;
    codes = weights.codes + (slice * kPanels + share) * (kBits * 32);
    scales = weights.scales + pair, zeros = weights.zeros + (kZeros ? pair : 0);
    Reader reader;
    let_next_begin();
    reader.prepare(rows, block);
    LATHE_UNROLL
    for (int i = 0; i < kAhead; ++i) fetch(ahead[i], i);
    LATHE_UNROLL
    for (int r = 0; r < kRounds; ++r) fetch(factors[r], r * kRound);
    prefetch(cached);
    clear();
    dependency_wait();
    reader.start(rows, block);
    if constexpr (kOwn == kAhead) {
      multiply(reader, 0);
    } else {
      LATHE_NO_UNROLL
      for (int turn = 0; turn < kOwn; turn += kAhead) multiply(reader, turn);
    }
  }

  // [column of the slice].
  LATHE_DEVICE_MEMBER void stage(float* to) const {
    LATHE_UNROLL
    for (int c = 0; c < 2; ++c) {
      float sum = sums[c];
      sum += shuffle_xor(sum, 1);
      sum += shuffle_xor(sum, 2);
      if (lane() % 4 == 0) to[lane() / 4 + c * 8] = sum;
    }
  }

 private:
  LATHE_DEVICE_MEMBER int panel_of(int turn) const { return share + turn * kWarps; }
  LATHE_DEVICE_MEMBER bool has(int turn) const {
    return kPanels % kWarps == 0 && kOwn % kAhead == 0 ? turn < kOwn : panel_of(turn) < kPanels;
  }

  LATHE_DEVICE_MEMBER void fetch(Codes& to, int turn) {
    if (!has(turn)) return;
    LATHE_UNROLL
    for (int i = 0; i < kBits / 4; ++i)
      to.words[i] = load_streaming(
          reinterpret_cast<const Vec<uint32, 4>*>(codes + turn * (kWarps * kBits * 32) + i * 128 + lane() * 4));
  }

  LATHE_DEVICE_MEMBER void fetch(Factors& to, int turn) {
    LATHE_UNROLL
    for (int e = 0; e < 2; ++e) {
      const int segment = lane() % 4 * 2 + e;
      const int at = panel_of(turn + segment / Parts::kOfPanel) * 64 + segment % Parts::kOfPanel * Parts::kLength;
      const int pair = Parts::block_at(at) * 16;
      to.scales[e] = *reinterpret_cast<const Vec<f16, 2>*>(scales + pair);
      if constexpr (kZeros) to.zeros[e] = *reinterpret_cast<const Vec<f16, 2>*>(zeros + pair);
    }
  }

  // Panels behind those that go to registers are brought to the last cache meanwhile.
  LATHE_DEVICE_MEMBER void prefetch(int cached) const {
    constexpr int kFetched = kAhead * kWarps, kRest = kPanels - kFetched;
    if constexpr (kRest > 0) {
      const int more = cached < kRest ? cached : kRest;
      if (more > 0 && share == 0 && lane() == 0)
        prefetch_to_cache(codes + kFetched * (kBits * 32L), more * (kBits * 128));
    }
  }

  // The lane's elements of the row in each round: those of its segment, where that is in the turn which it has a row
  // for; zeros in all others.
  LATHE_DEVICE_MEMBER static int own_segment() { return lane() % 4 * 16 / Parts::kLength; }
  // Which turn of a round that is; -1 = none.
  LATHE_DEVICE_MEMBER static int own_turn() {
    const int place = (lane() / 4 - own_segment()) & 7;
    return place % Parts::kOfPanel == 0 ? place / Parts::kOfPanel : -1;
  }

  LATHE_DEVICE_MEMBER void multiply(const Reader& reader, int first) {
    const int own = own_turn();
    unsigned row[kRounds][8] = {};
    LATHE_UNROLL
    for (int r = 0; r < kRounds; ++r) {
      const int turn = first + r * kRound + own;
      if (own >= 0 && r * kRound + own < kAhead && has(turn))
        reader.load(row[r], 0, panel_of(turn) * 64 + lane() % 4 * 16);
    }
    LATHE_UNROLL
    for (int r = 0; r < kRounds; ++r) {
      float products[4] = {}, elements[4] = {};
      LATHE_UNROLL
      for (int i = 0; i < kRound; ++i) {
        const int at = r * kRound + i;
        if (at >= kAhead || !has(first + at)) break;
        multiply(products, ahead[at], row[r], own == i);
        fetch(ahead[at], first + at + kAhead);
      }
      add_up(elements, row[r]);
      scale(products, elements, factors[r]);
      if (kOwn > kAhead) fetch(factors[r], first + kAhead + r * kRound);
    }
  }

  LATHE_DEVICE_MEMBER static void multiply(float (&to)[4], const Codes& panel, const unsigned (&row)[8], bool is_own) {
    LATHE_UNROLL
    for (int step = 0; step < 4; ++step) {
      unsigned left[4];
      LATHE_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int word = step * (kBits / 4) + i * kBits / 16;
        left[i] = subnormals_of(panel.words[word / 4].at[word % 4], i);
      }
      const unsigned right[2] = {is_own ? row[step * 2] : 0, is_own ? row[step * 2 + 1] : 0};
      mma_m16n8k16(to, left, right, f16{});
    }
  }

  // Codes of pair i (codes_of()), times 2 ** -24; 4 bits of column c + 8 times 2 ** -20, for they are not shifted.
  LATHE_DEVICE_MEMBER static unsigned subnormals_of(uint32 word, int i) {
    if (kBits == 8) return word >> i % 2 * 8 & 0x00ff00ffu;
    return word >> i / 2 * 8 & (i % 2 == 0 ? 0x000f000fu : 0x00f000f0u);
  }

  // Sums of the segments' elements, where those of their products are.
  LATHE_DEVICE_MEMBER static void add_up(float (&to)[4], const unsigned (&row)[8]) {
    constexpr unsigned kOnes = 0x3c003c00u;
    const unsigned ones[4] = {kOnes, kOnes, kOnes, kOnes};
    LATHE_UNROLL
    for (int step = 0; step < 4; ++step) {
      const unsigned right[2] = {row[step * 2], row[step * 2 + 1]};
      mma_m16n8k16(to, ones, right, f16{});
    }
  }

  LATHE_DEVICE_MEMBER void scale(const float (&products)[4], const float (&elements)[4], const Factors& by) {
    LATHE_UNROLL
    for (int c = 0; c < 2; ++c) LATHE_UNROLL
    for (int e = 0; e < 2; ++e) {
      float zero = 1 << (kBits - 1);
      if constexpr (kZeros) zero = to_float(by.zeros[e].at[c]) - static_cast<float>(offset_of<f16, kBits>(c));
      const float unit = kBits == 4 && c == 1 ? 0x1p20f : 0x1p24f;
      sums[c] =
          fmaf(fmaf(products[c * 2 + e], unit, -zero * elements[c * 2 + e]), to_float(by.scales[e].at[c]), sums[c]);
    }
  }
};

}  // namespace weight_only
