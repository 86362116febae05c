// SPDX-License-Identifier: Apache-2.0
// Products by constant weights of 4 and 8 bits: codes pass once from memory to registers, become (code - zero) * scale
// there, of the type that is multiplied, and go to the tensor cores as left operand, as gemv's do.
#pragma once

#include "gemv/gemv.cuh"

namespace weight_only {

using gemv::pair_of;

// B as it is packed. Codes: [column / 16][K / 64][kBits / 4][lane][4 words], of a lane's columns c = lane / 4 and c + 8
// and its 16 elements of K from lane % 4 * 16 on. Scales and zeros: [column / 16][K / block][c][2], of the type that is
// multiplied, or f32 where that is done on scalar units; zeros as offset_of() has them.
template <class T>
struct Weights {
  const uint32* codes;
  const T* scales;
  const T* zeros;
  int block;  // of K: a multiple of 16, or all of it
};

// What a lane needs of a panel.
template <class T, int kBits>
struct PackedPanel {
  Vec<uint32, 4> codes[kBits / 4];
  Vec<T, 2> scales, zeros;  // of its two columns
};

// What is added to codes where they become floats, and so to zeros: f16 and bf16 hold 1024 + code and 128 + code, whose
// low bits are the code. bf16 has no room for 8 bits.
template <class T, int kBits>
inline constexpr int offset_of = is_same<T, f16>                 ? 1024
                                 : is_same<T, bf16>&& kBits == 4 ? 128
                                                                 : 0;

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
LATHE_DEVICE void dequantize_step(unsigned (&a)[4], const PackedPanel<T, kBits>& panel, int step) {
  LATHE_UNROLL
  for (int i = 0; i < 4; ++i) {
    constexpr int kPairs = 16 / kBits;  // in a word
    const int word = step * (kBits / 4) + i / kPairs;
    constexpr unsigned kMask = kBits == 4 ? 0x000f000fu : 0x00ff00ffu;
    const unsigned codes = panel.codes[word / 4].at[word % 4] >> i % kPairs * kBits & kMask;
    a[i] = dequantize_pair<kBits, Code>(codes, panel.zeros.at[i % 2], panel.scales.at[i % 2]);
  }
}

// A block's columns, for gemv::Stream. Code, of tiles, is the type of 8-bit floats, or that of integers.
template <class T, int kBits, bool kZeros, class Code>
struct PackedColumns {
  static constexpr int kPanelWords = kBits * 32, kPanelBytes = kPanelWords * 4;
  using Panel = PackedPanel<T, kBits>;

  const uint32* own;
  const T *scales, *zeros;
  int first, blocks, block_size;

  LATHE_DEVICE_MEMBER PackedColumns(const Weights<T>& weights, const gemm::Block& block, int k) {
    const long tile = block.column / 16, panels = (k + 63) / 64;
    first = static_cast<int>(block.k / 64);
    block_size = weights.block, blocks = (k + block_size - 1) / block_size;
    own = weights.codes + (tile * panels + first) * kPanelWords;
    scales = weights.scales + tile * blocks * 16 + lane() / 4 * 2;
    zeros = weights.zeros + tile * blocks * 16 + lane() / 4 * 2;
  }
  LATHE_DEVICE_MEMBER const void* codes(int panel) const { return own + panel * kPanelWords; }
  LATHE_DEVICE_MEMBER void fetch(Panel& to, int panel) const {
    LATHE_UNROLL
    for (int i = 0; i < kBits / 4; ++i)
      to.codes[i] =
          load_streaming(reinterpret_cast<const Vec<uint32, 4>*>(own + panel * kPanelWords + i * 128 + lane() * 4));
    const int block = ((first + panel) * 64 + lane() % 4 * 16) / block_size;
    const int pair = (block < blocks ? block : blocks - 1) * 16;
    to.scales = *reinterpret_cast<const Vec<T, 2>*>(scales + pair);
    if constexpr (kZeros)
      to.zeros = *reinterpret_cast<const Vec<T, 2>*>(zeros + pair);
    else
      to.zeros.at[0] = to.zeros.at[1] = from_float<T>(offset_of<T, kBits> + (1 << (kBits - 1)));
  }
  LATHE_DEVICE_MEMBER static void operand_of(unsigned (&a)[4], const Panel& panel, int step) {
    dequantize_step<kBits, Code>(a, panel, step);
  }
};

// On the scalar units: 16 columns by kRows rows. What is dequantised is rounded to the type of the rows, T.
template <class T, int kBits, int kWarps, int kRows, int kAhead, int kWidth, bool kZeros, class Code>
struct ScalarTile {
  static constexpr int kM = kRows, kN = 16, kK = 64;
  static constexpr int kThreads = 32 * kWarps;
  using Columns = PackedColumns<float, kBits, kZeros, Code>;

  float sums[kRows][2];

  LATHE_DEVICE_MEMBER void run(const Columns& packed, const gemv::Rows<T>& rows, const gemm::Block& block, int cached) {
    gemv::Stream<Columns, kWarps, kAhead> stream(packed, block, cached);
    LATHE_UNROLL
    for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = 0;
    dependency_wait();
    const auto none = [](int, int) {};
    stream.run(none, [&](int, const typename Columns::Panel& panel, int at) {
      float columns[2][16];
      dequantize(columns, panel);
      LATHE_UNROLL
      for (int r = 0; r < kRows; ++r) {
        if (block.row + r >= rows.m) break;
        T row[16];
        gemv::load_run<kWidth>(row, rows.x + (block.row + r) * rows.pitch, rows.stride, at, rows.k);
        LATHE_UNROLL
        for (int e = 0; e < 16; ++e) LATHE_UNROLL
        for (int c = 0; c < 2; ++c) sums[r][c] = fmaf(to_float(row[e]), columns[c][e], sums[r][c]);
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
  LATHE_DEVICE_MEMBER static void dequantize(float (&to)[2][16], const typename Columns::Panel& panel) {
    constexpr int kPairs = 16 / kBits;
    LATHE_UNROLL
    for (int i = 0; i < 16; ++i) {  // pairs: of a step the columns c and c + 8 at two elements, then at the next two
      const int word = i / 4 * (kBits / 4) + i % 4 / kPairs, c = i % 2, k = i / 4 * 4 + i % 4 / 2 * 2;
      const uint32 codes = panel.codes[word / 4].at[word % 4] >> i % 4 % kPairs * kBits;
      const auto value = [&](uint32 bits) {
        if constexpr (is_float8<Code>) return to_float(Code{static_cast<uint8>(bits)}) * panel.scales.at[c];
        return (static_cast<float>(bits & ((1u << kBits) - 1)) - panel.zeros.at[c]) * panel.scales.at[c];
      };
      to[c][k] = to_float(from_float<T>(value(codes)));
      to[c][k + 1] = to_float(from_float<T>(value(codes >> 16)));
    }
  }
};

}  // namespace weight_only
