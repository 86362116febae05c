// SPDX-License-Identifier: Apache-2.0
// Products by constant weights of 4 and 8 bits: codes pass once from memory to registers, become (code - zero) * scale
// there, of the type that is multiplied, and go to the tensor cores as left operand, as gemv's do. Elements of K may be
// in any order that both operands agree on: of 64 neighbours, a lane has 16.
#pragma once

#include "gemv/gemv.cuh"

namespace weight_only {

// B as it is packed; Code, of tiles, is the type of 8-bit floats, or that of integers. Codes: [column / 16][K /
// 64][kBits / 4][lane][4 words], of a lane's columns c = lane / 4 and c + 8 and its 16 elements of K from lane % 4 * 16
// on. Scales and zeros: [column / 16][K / block][c][2]; zeros as offset_of() has them.
template <class T>
struct Weights {
  const uint32* codes;
  const T* scales;
  const T* zeros;
  int block;  // of K: a multiple of 16, or all of it
};

// What a lane needs of a panel.
template <class T, int kBits>
struct Panel {
  Vec<uint32, 4> codes[kBits / 4];
  Vec<T, 2> scales, zeros;  // of its two columns
};

// What is added to codes where they become floats, and so to zeros: f16 and bf16 hold 1024 + code and 128 + code, whose
// low bits are the code. bf16 has no room for 8 bits.
template <class T, int kBits>
inline constexpr int offset_of = is_same<T, f16>                 ? 1024
                                 : is_same<T, bf16>&& kBits == 4 ? 128
                                                                 : 0;

// 16 neighbours of a row of A from element `at` on, W of which are read at once, or one by one with a stride between
// them; zeros outside.
template <int W, class T>
LATHE_DEVICE void load_run(T (&to)[16], const T* row, long stride, int at, int k) {
  LATHE_UNROLL
  for (int i = 0; i<16; i += W> 0 ? W : 1) {
    if constexpr (W > 0) {
      const Vec<T, W> part = gemv::load_some<W>(row + at + i, k - at - i);
      LATHE_UNROLL
      for (int j = 0; j < W; ++j) to[i + j] = part.at[j];
    } else {
      to[i] = at + i < k ? row[(at + i) * stride] : T{};
    }
  }
}

template <class T>
LATHE_DEVICE unsigned pair_of(T low, T high) {
  return static_cast<unsigned>(low.bits) | static_cast<unsigned>(high.bits) << 16;
}

// An 8-bit float as an f16: its exponent's bias, if that is another one, is made up for by a factor.
LATHE_DEVICE unsigned widen_pair(unsigned codes, f8e4m3) {
  constexpr unsigned kFactor = 0x5c005c00u;  // 2 ** 8, twice
  return multiply_pairs((codes & 0x007f007fu) << 7 | (codes & 0x00800080u) << 8, kFactor, f16{});
}
LATHE_DEVICE unsigned widen_pair(unsigned codes, f8e5m2) { return codes << 8; }

// Two elements of 16 bits, of which each half of `codes` has a code in its low bits.
template <int kBits, class Code, class T>
LATHE_DEVICE unsigned dequantize_pair(unsigned codes, T zero, T scale) {
  if constexpr (is_float8<Code> && is_same<T, f16>) {
    return multiply_pairs(widen_pair(codes, Code{}), pair_of(scale, scale), T{});
  } else if constexpr (is_float8<Code>) {
    const float low = to_float(Code{static_cast<uint8>(codes)}), high = to_float(Code{static_cast<uint8>(codes >> 16)});
    return pair_of(from_float<T>(low * to_float(scale)), from_float<T>(high * to_float(scale)));
  } else if constexpr (offset_of < T, kBits >> 0) {
    constexpr unsigned kOffset = is_same<T, f16> ? 0x64006400u : 0x43004300u;
    return multiply_pairs(subtract_pairs(codes | kOffset, pair_of(zero, zero), T{}), pair_of(scale, scale), T{});
  } else {
    const float z = to_float(zero), s = to_float(scale);
    const float low = static_cast<float>(codes & 0xffffu), high = static_cast<float>(codes >> 16);
    return pair_of(from_float<T>((low - z) * s), from_float<T>((high - z) * s));
  }
}

// The left operand of a step of 16 elements of K: columns c and c + 8 at two elements, then both at the next two. Of a
// word of 4 bits pair i has bits 4i and 4i + 16; words of 8 bits have two pairs each, in bytes i and i + 2.
template <int kBits, class Code, class T>
LATHE_DEVICE void dequantize_step(unsigned (&a)[4], const Panel<T, kBits>& panel, int step) {
  LATHE_UNROLL
  for (int i = 0; i < 4; ++i) {
    constexpr int kPairs = 16 / kBits;  // in a word
    const int word = step * (kBits / 4) + i / kPairs;
    constexpr unsigned kMask = kBits == 4 ? 0x000f000fu : 0x00ff00ffu;
    const unsigned codes = panel.codes[word / 4].at[word % 4] >> i % kPairs * kBits & kMask;
    a[i] = dequantize_pair<kBits, Code>(codes, panel.zeros.at[i % 2], panel.scales.at[i % 2]);
  }
}

// What a block reads: a row of A begins at x + row * pitch, its elements `stride` apart.
template <class T>
struct Rows {
  const T* x;
  long pitch, stride, m;
  int k;
};

// The loop over panels that both kinds of tiles have. The warps of a block take panels in turn; each has kAhead of them
// on the way. A is read for the panel after the one in turn.
template <class T, int kBits, int kWarps, bool kZeros>
struct PanelLoop {
  static constexpr int kAhead = 32 / kBits;
  static constexpr int kPanelWords = kBits * 32;
  using P = Panel<T, kBits>;

  const uint32* codes;
  const T *scales, *zeros;
  int first, count, blocks, block_size;

  LATHE_DEVICE_MEMBER PanelLoop(const Weights<T>& weights, const gemm::Block& block, int k) {
    const long tile = block.column / 16, panels = (k + 63) / 64;
    first = static_cast<int>(block.k / 64), count = block.blocks;
    block_size = weights.block, blocks = (k + block_size - 1) / block_size;
    codes = weights.codes + (tile * panels + first) * kPanelWords + lane() * 4;
    scales = weights.scales + tile * blocks * 16 + lane() / 4 * 2;
    zeros = weights.zeros + tile * blocks * 16 + lane() / 4 * 2;
  }

  LATHE_DEVICE_MEMBER int element_of(int panel) const { return (first + panel) * 64 + lane() % 4 * 16; }

  LATHE_DEVICE_MEMBER void fetch(P& to, int panel) const {
    if (panel >= count) return;
    LATHE_UNROLL
    for (int i = 0; i < kBits / 4; ++i)
      to.codes[i] = load_streaming(reinterpret_cast<const Vec<uint32, 4>*>(codes + panel * kPanelWords + i * 128));
    const int own = element_of(panel) / block_size, pair = (own < blocks ? own : blocks - 1) * 16;
    to.scales = *reinterpret_cast<const Vec<T, 2>*>(scales + pair);
    if constexpr (kZeros)
      to.zeros = *reinterpret_cast<const Vec<T, 2>*>(zeros + pair);
    else
      to.zeros.at[0] = to.zeros.at[1] = from_float<T>(offset_of<T, kBits> + (1 << (kBits - 1)));
  }

  // For each panel of the warp use(slot, panel, its lane's first element of K), and load(slot, that element) while the
  // panel before is used: slots 0 and 1 in turns.
  template <class Load, class Use>
  LATHE_DEVICE_MEMBER void run(const Load& load, const Use& use) const {
    P ahead[kAhead] = {};
    LATHE_UNROLL
    for (int i = 0; i < kAhead; ++i) fetch(ahead[i], warp() + i * kWarps);
    dependency_wait();
    if (warp() < count) load(0, element_of(warp()));
    for (int panel = warp(); panel < count; panel += kAhead * kWarps) {
      LATHE_UNROLL
      for (int i = 0; i < kAhead; ++i) {
        const int at = panel + i * kWarps;
        if (at >= count) break;
        const P now = ahead[i];
        fetch(ahead[i], at + kAhead * kWarps);
        if (at + kWarps < count) load((i + 1) % 2, element_of(at + kWarps));
        use(i % 2, now, element_of(at));
      }
    }
  }
};

// 16-bit elements on tensor cores: 16 columns by 8 * kTiles rows.
template <class T, int kBits, int kWarps, int kTiles, int kWidth, bool kZeros, class Code>
struct MmaTile {
  static constexpr int kM = 8 * kTiles, kN = 16, kK = 64;
  static constexpr int kThreads = 32 * kWarps;

  float sums[kTiles][4];

  LATHE_DEVICE_MEMBER void run(const Weights<T>& weights, const Rows<T>& rows, const gemm::Block& block) {
    LATHE_UNROLL
    for (int j = 0; j < kTiles; ++j) LATHE_UNROLL
    for (int e = 0; e < 4; ++e) sums[j][e] = 0;
    unsigned ahead[2][8];  // of one tile of rows; more are read as they are multiplied
    const auto load = [&](int slot, int at) {
      if constexpr (kTiles == 1) load_row(ahead[slot], rows, block.row, at);
    };
    PanelLoop<T, kBits, kWarps, kZeros>(weights, block, rows.k)
        .run(load, [&](int slot, const Panel<T, kBits>& panel, int at) {
          unsigned columns[4][4], row[8];
          LATHE_UNROLL
          for (int step = 0; step < 4; ++step) dequantize_step<kBits, Code>(columns[step], panel, step);
          LATHE_UNROLL
          for (int j = 0; j < kTiles; ++j) {
            if constexpr (kTiles > 1) load_row(row, rows, block.row + j * 8, at);
            const unsigned(&from)[8] = kTiles > 1 ? row : ahead[slot];
            LATHE_UNROLL
            for (int step = 0; step < 4; ++step) {
              const unsigned pair[2] = {from[step * 2], from[step * 2 + 1]};
              mma_m16n8k16(sums[j], columns[step], pair, T{});
            }
          }
        });
  }

  // [row][column], kM x kN.
  LATHE_DEVICE_MEMBER void stage(float* to) const {
    LATHE_UNROLL
    for (int j = 0; j < kTiles; ++j) LATHE_UNROLL
    for (int e = 0; e < 4; ++e) to[(j * 8 + lane() % 4 * 2 + e % 2) * kN + lane() / 4 + e / 2 * 8] = sums[j][e];
  }

 private:
  // A lane's elements of a row, in pairs; zeros outside.
  LATHE_DEVICE_MEMBER static void load_row(unsigned (&to)[8], const Rows<T>& rows, long first, int at) {
    const long row = first + lane() / 4;
    LATHE_UNROLL
    for (int i = 0; i < 8; ++i) to[i] = 0;
    if (row >= rows.m) return;
    const T* from = rows.x + row * rows.pitch;
    if (kWidth == 8 && at + 16 <= rows.k) {
      LATHE_UNROLL
      for (int half = 0; half < 2; ++half) {
        const auto words = *reinterpret_cast<const Vec<uint32, 4>*>(from + at + half * 8);
        LATHE_UNROLL
        for (int i = 0; i < 4; ++i) to[half * 4 + i] = words.at[i];
      }
      return;
    }
    T run[16];
    load_run<kWidth>(run, from, rows.stride, at, rows.k);
    LATHE_UNROLL
    for (int i = 0; i < 8; ++i) to[i] = pair_of(run[2 * i], run[2 * i + 1]);
  }
};

// f32 on the scalar units: 16 columns by kRows rows.
template <int kBits, int kWarps, int kRows, int kWidth, bool kZeros, class Code>
struct ScalarTile {
  static constexpr int kM = kRows, kN = 16, kK = 64;
  static constexpr int kThreads = 32 * kWarps;

  float sums[kRows][2];

  LATHE_DEVICE_MEMBER void run(const Weights<float>& weights, const Rows<float>& rows, const gemm::Block& block) {
    LATHE_UNROLL
    for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = 0;
    const auto none = [](int, int) {};
    PanelLoop<float, kBits, kWarps, kZeros>(weights, block, rows.k)
        .run(none, [&](int, const Panel<float, kBits>& panel, int at) {
          float columns[2][16];
          dequantize(columns, panel);
          LATHE_UNROLL
          for (int r = 0; r < kRows; ++r) {
            if (block.row + r >= rows.m) break;
            float row[16];
            load_run<kWidth>(row, rows.x + (block.row + r) * rows.pitch, rows.stride, at, rows.k);
            LATHE_UNROLL
            for (int e = 0; e < 16; ++e) LATHE_UNROLL
            for (int c = 0; c < 2; ++c) sums[r][c] = fmaf(row[e], columns[c][e], sums[r][c]);
          }
        });
  }

  LATHE_DEVICE_MEMBER void stage(float* to) const {
    LATHE_UNROLL
    for (int r = 0; r < kRows; ++r) LATHE_UNROLL
    for (int c = 0; c < 2; ++c) {
      float sum = sums[r][c];
      sum += shuffle_xor(sum, 1);
      sum += shuffle_xor(sum, 2);
      if (lane() % 4 == 0) to[r * kN + lane() / 4 + c * 8] = sum;
    }
  }

 private:
  LATHE_DEVICE_MEMBER static void dequantize(float (&to)[2][16], const Panel<float, kBits>& panel) {
    constexpr int kPairs = 16 / kBits;
    LATHE_UNROLL
    for (int i = 0; i < 16; ++i) {  // pairs: of a step the columns c and c + 8 at two elements, then at the next two
      const int word = i / 4 * (kBits / 4) + i % 4 / kPairs, c = i % 2, k = i / 4 * 4 + i % 4 / 2 * 2;
      const uint32 codes = panel.codes[word / 4].at[word % 4] >> i % 4 % kPairs * kBits;
      if constexpr (is_float8<Code>) {
        to[c][k] = to_float(Code{static_cast<uint8>(codes)}) * panel.scales.at[c];
        to[c][k + 1] = to_float(Code{static_cast<uint8>(codes >> 16)}) * panel.scales.at[c];
        continue;
      }
      const float low = static_cast<float>(codes & ((1u << kBits) - 1));
      const float high = static_cast<float>(codes >> 16 & ((1u << kBits) - 1));
      to[c][k] = (low - panel.zeros.at[c]) * panel.scales.at[c];
      to[c][k + 1] = (high - panel.zeros.at[c]) * panel.scales.at[c];
    }
  }
};

}  // namespace weight_only
