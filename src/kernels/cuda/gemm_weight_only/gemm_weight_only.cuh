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
struct PackedWeights {
  const uint32* codes;
  const T* scales;
  const T* zeros;
};

// What a lane needs of a panel.
template <class T, int kBits>
struct PackedPanel {
  Vec<uint32, 4> codes[kBits / 4];
  Vec<T, 2> scales, zeros;  // of its two columns
};

// What is added to the codes of columns c and c + 8 where they become floats, and so to their zeros. f16 and bf16 hold
// 1024 + code and 128 + code, whose low bits are the code; bf16 has no room for 8 bits. Of c + 8 codes of 4 bits are
// not shifted: 1024 + 16 * code is 16 times what is wanted.
template <class T, int kBits>
LATHE_DEVICE constexpr int offset_of(int column) {
  if (is_same<T, f16>) return kBits == 4 && column == 1 ? 64 : 1024;
  return is_same<T, bf16> && kBits == 4 ? 128 : 0;
}

template <class Code>
inline constexpr bool kIsFloat = is_float8<Code> || is_same<Code, f4e2m1>;

// Two narrow floats as such of 16 bits: the exponent's bias, if that is another one, is made up for by a factor.
LATHE_DEVICE unsigned widen_pair(unsigned codes, f8e4m3, f16) {
  constexpr unsigned kFactor = 0x5c005c00u;  // 2 ** 8, twice
  return multiply_pairs((codes & 0x007f007fu) << 7 | (codes & 0x00800080u) << 8, kFactor, f16{});
}
LATHE_DEVICE unsigned widen_pair(unsigned codes, f8e5m2, f16) { return codes << 8; }
LATHE_DEVICE unsigned widen_pair(unsigned codes, f4e2m1, f16) {
  constexpr unsigned kFactor = 0x74007400u;  // 2 ** 14
  return multiply_pairs((codes & 0x00070007u) << 9 | (codes & 0x00080008u) << 12, kFactor, f16{});
}
LATHE_DEVICE unsigned widen_pair(unsigned codes, f4e2m1, bf16) {
  constexpr unsigned kFactor = 0x7e807e80u;  // 2 ** 126
  return multiply_pairs((codes & 0x00070007u) << 6 | (codes & 0x00080008u) << 12, kFactor, bf16{});
}

// Pair i of a step's words: of columns c and c + 8 at two elements of K, then of both at the next two. A word of 4 bits
// has pair i in bits 4i and 4i + 16; words of 8 bits have two pairs each, in bytes i and i + 2.
template <int kBits>
LATHE_DEVICE unsigned codes_of(unsigned word, int i) {
  constexpr int kPairs = 16 / kBits;
  return word >> i % kPairs * kBits & (kBits == 4 ? 0x000f000fu : 0x00ff00ffu);
}

// Codes of integers less their zero point.
template <int kBits, class T>
LATHE_DEVICE unsigned levels_of(unsigned word, int i, T zero) {
  constexpr unsigned kOffset = is_same<T, f16> ? 0x64006400u : 0x43004300u;
  const unsigned zeros = pair_of(zero, zero);
  if constexpr (is_same<T, f16> && kBits == 4) {
    constexpr unsigned kSixteenth = 0x2c002c00u, kSigns = 0x80008000u;
    const unsigned half = word >> i / 2 * 8;
    if (i % 2 == 0) return subtract_pairs(merge_bits(half, 0x000f000fu, kOffset), zeros, T{});
    return multiply_add_pairs(merge_bits(half, 0x00f000f0u, kOffset), kSixteenth, zeros ^ kSigns, T{});
  } else {
    constexpr unsigned kMask = kBits == 4 ? 0x000f000fu : 0x00ff00ffu;
    return subtract_pairs(merge_bits(word >> i % (16 / kBits) * kBits, kMask, kOffset), zeros, T{});
  }
}

template <int kBits, class Code, class T>
LATHE_DEVICE unsigned dequantize_pair(unsigned word, int i, T zero, T scale) {
  if constexpr (kIsFloat<Code> && (is_same<T, f16> || (is_same<T, bf16> && kBits == 4))) {
    return multiply_pairs(widen_pair(codes_of<kBits>(word, i), Code{}, T{}), pair_of(scale, scale), T{});
  } else if constexpr (!kIsFloat<Code> && offset_of<T, kBits>(0) > 0) {
    return multiply_pairs(levels_of<kBits>(word, i, zero), pair_of(scale, scale), T{});
  } else {
    const unsigned codes = codes_of<kBits>(word, i);
    const auto value = [&](unsigned bits) {
      if constexpr (kIsFloat<Code>) return to_float(Code{static_cast<uint8>(bits)}) * to_float(scale);
      return (static_cast<float>(bits) - to_float(zero)) * to_float(scale);
    };
    return pair_of(from_float<T>(value(codes & 0xffffu)), from_float<T>(value(codes >> 16)));
  }
}

// A slice of columns from a panel of kK on, for gemv::Stream. Code, of tiles, is the type of floats, or that of
// integers; blocks of scales are of kBlock elements of K: a multiple of 16, or all of it.
template <class T, int kBits, bool kZeros, class Code, int kK, int kBlock>
struct PackedColumns {
  using Weights = PackedWeights<T>;
  using Panel = PackedPanel<T, kBits>;
  static constexpr int kPanelWords = kBits * 32, kPanelBytes = kPanelWords * 4;
  static constexpr int kBlocks = (kK + kBlock - 1) / kBlock;
  static constexpr bool kWhole =
      64 % kBlock == 0 && kK % 64 == 0;  // blocks of each panel are its own, and all are there

  const uint32* own;
  const T *scales, *zeros;
  int first;

  LATHE_DEVICE_MEMBER PackedColumns(const Weights& weights, long column, int panel) : first(panel) {
    const long slice = column / 16;
    const long pair = slice * kBlocks * 16 + lane() / 4 * 2 + (kWhole ? block_of(0) * 16 : 0);
    own = weights.codes + (slice * ((kK + 63) / 64) + panel) * kPanelWords + lane() * 4;
    scales = weights.scales + pair;
    zeros = weights.zeros + (kZeros ? pair : 0);
  }
  LATHE_DEVICE_MEMBER const void* codes(int panel) const { return own - lane() * 4 + panel * kPanelWords; }
  LATHE_DEVICE_MEMBER void fetch(Panel& to, int panel) const {
    LATHE_UNROLL
    for (int i = 0; i < kBits / 4; ++i)
      to.codes[i] = load_streaming(reinterpret_cast<const Vec<uint32, 4>*>(own + panel * kPanelWords + i * 128));
    const int pair = kWhole ? panel * (64 / kBlock * 16) : block_of(panel) * 16;
    to.scales = *reinterpret_cast<const Vec<T, 2>*>(scales + pair);
    if constexpr (kZeros) to.zeros = *reinterpret_cast<const Vec<T, 2>*>(zeros + pair);
  }
  LATHE_DEVICE_MEMBER static T zero_of(const Panel& panel, int column) {
    return kZeros ? panel.zeros.at[column] : from_float<T>(offset_of<T, kBits>(column) + (1 << (kBits - 1)));
  }
  LATHE_DEVICE_MEMBER static void operand_of(unsigned (&a)[4], const Panel& panel, int step) {
    LATHE_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int word = step * (kBits / 4) + i * kBits / 16;
      a[i] = dequantize_pair<kBits, Code>(panel.codes[word / 4].at[word % 4], i, zero_of(panel, i % 2),
                                          panel.scales.at[i % 2]);
    }
  }

 private:
  // Where the lane's scales are; what a panel has behind K takes the last ones.
  LATHE_DEVICE_MEMBER int block_of(int panel) const {
    const int block = ((first + panel) * 64 + lane() % 4 * 16) / kBlock;
    return kWhole || block < kBlocks ? block : kBlocks - 1;
  }
};

// On the scalar units: 16 columns by kRows rows. What is dequantised is rounded to the type of the rows, T.
template <class Columns, class T, int kBits, int kWarps, int kRows, int kAhead, int kOwn, int kWidth, class Code>
struct ScalarTile {
  static constexpr int kM = kRows, kSlice = 16, kN = kSlice, kK = 64;
  static constexpr int kThreads = 32 * kWarps;

  float sums[kRows][2];

  LATHE_DEVICE_MEMBER void clear() {
    LATHE_UNROLL
    for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = 0;
  }

  template <class Rows>
  LATHE_DEVICE_MEMBER void run(const typename Columns::Weights& weights, const Rows& rows, const gemm::Block& block,
                               long, int cached) {
    gemv::Stream<Columns, kWarps, kAhead, kOwn> stream(weights, block.column, block, cached);
    clear();
    dependency_wait();
    const auto none = [](int, int) {};
    stream.run(none, [&](int, const typename Columns::Panel& panel, int at) {
      float columns[2][16];
      dequantize(columns, panel);
      LATHE_UNROLL
      for (int r = 0; r < kRows; ++r) {
        if (block.row + r >= rows.m) break;
        T row[16];
        gemv::load_run<kWidth>(row, rows.at(block.row + r), rows.stride, at, rows.k);
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
        if constexpr (kIsFloat<Code>) return to_float(Code{static_cast<uint8>(bits)}) * panel.scales.at[c];
        return (static_cast<float>(bits & ((1u << kBits) - 1)) - Columns::zero_of(panel, c)) * panel.scales.at[c];
      };
      to[c][k] = to_float(from_float<T>(value(codes)));
      to[c][k + 1] = to_float(from_float<T>(value(codes >> 16)));
    }
  }
};

}  // namespace weight_only
