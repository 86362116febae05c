// SPDX-License-Identifier: Apache-2.0
// The product of two panels on tensor cores: warp tiles of mma.sync, fragments by ldmatrix.
#pragma once

#include "gemm/panel.cuh"
#include "gemm/staging.cuh"
#include "lib/intrinsics.cuh"

namespace gemm {

// The instruction for an element type. Each consumes 32 bytes of K, so fragments of K-major panels are read alike.
template <class T>
struct Instruction;

template <>
struct Instruction<f16> {
  LATHE_DEVICE_MEMBER static void run(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    mma_m16n8k16(d, a, b, f16{});
  }
};

template <>
struct Instruction<bf16> {
  LATHE_DEVICE_MEMBER static void run(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    mma_m16n8k16(d, a, b, bf16{});
  }
};

template <>
struct Instruction<float> {  // operands rounded to TF32
  LATHE_DEVICE_MEMBER static void run(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    mma_m16n8k8_tf32(d, a, b);
  }
};

template <>
struct Instruction<int8> {
  LATHE_DEVICE_MEMBER static void run(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    mma_m16n8k32_s8(d, a, b);
  }
};

// Sums of 8-bit floats that matrix units add up have about 14 bits, so those of each instruction are added in f32
// (docs/decisions/0071).
template <class T>
LATHE_DEVICE void multiply_apart(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  float part[4] = {};
  mma_m16n8k32(part, a, b, T{});
  LATHE_UNROLL
  for (int i = 0; i < 4; ++i) d[i] += part[i];
}

template <>
struct Instruction<f8e4m3> {
  LATHE_DEVICE_MEMBER static void run(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    multiply_apart<f8e4m3>(d, a, b);
  }
};

template <>
struct Instruction<f8e5m2> {
  LATHE_DEVICE_MEMBER static void run(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    multiply_apart<f8e5m2>(d, a, b);
  }
};

// kWarpsK warps compute the same tile, each from its part of a panel's K: they read less than warps of smaller tiles.
// kMnMajorA: M is contiguous in A's memory, and a row of its panel has one K; kMnMajorB: so for N in B's. 16-bit
// elements are transposed by ldmatrix, 32-bit ones read word by word; 8-bit ones must be K-major.
template <class T, int kM_, int kN_, int kK_, int kWarpM_, int kWarpN_, int kWarpsK_, int kStages_, bool kMnMajorA_,
          bool kMnMajorB_>
struct MmaTile {
  using Element = T;
  using Accumulator = typename MatrixSum<T>::Type;
  static constexpr int kM = kM_, kN = kN_, kK = kK_, kWarpM = kWarpM_, kWarpN = kWarpN_, kStages = kStages_;
  static constexpr bool kMnMajorA = kMnMajorA_, kMnMajorB = kMnMajorB_;
  static constexpr int kWarpsM = kM / kWarpM, kWarpsN = kN / kWarpN, kWarpsK = kWarpsK_;
  static constexpr int kThreads = 32 * kWarpsM * kWarpsN * kWarpsK;
  static constexpr int kStepK = 32 / static_cast<int>(sizeof(T));
  static constexpr int kSteps = kK / kStepK / kWarpsK;  // of a warp
  static constexpr bool kAsynchronous = false;
  static constexpr bool kAhead = true;  // reads the next step's fragments while it multiplies
  static constexpr int kBuffers = 2;
  static constexpr int kRowTiles = kWarpM / 16, kColumnTiles = kWarpN / 8;
  using PanelA = Panel<T, kMnMajorA ? kK : kM, kMnMajorA ? kM : kK, kMnMajorA && sizeof(T) == 4>;
  using PanelB = Panel<T, kMnMajorB ? kK : kN, kMnMajorB ? kN : kK, kMnMajorB && sizeof(T) == 4>;
  static_assert(kM % kWarpM == 0 && kN % kWarpN == 0 && kWarpM % 16 == 0 && kWarpN % 16 == 0, "whole warp tiles");
  static_assert(kK % (kStepK * kWarpsK) == 0 && kSteps % 2 == 0, "steps of a block alternate between two buffers");
  static_assert(sizeof(T) > 1 || (!kMnMajorA && !kMnMajorB), "8-bit panels are K-major");

  struct Fragments {
    unsigned a[kRowTiles][4];
    unsigned b[kColumnTiles][2];
  };

  Accumulator acc[kRowTiles][kColumnTiles][4];

  LATHE_DEVICE_MEMBER void clear() { clear_sums(acc); }

  LATHE_DEVICE_MEMBER static int slice() { return kWarpsK == 1 ? 0 : warp() / (kWarpsM * kWarpsN); }  // of K
  LATHE_DEVICE_MEMBER static int warp_row() { return warp() / kWarpsN % kWarpsM * kWarpM; }
  LATHE_DEVICE_MEMBER static int warp_column() { return warp() % kWarpsN * kWarpN; }

  LATHE_DEVICE_MEMBER static void load(Fragments& f, const char* a, const char* b, int step) {
    step += slice() * kSteps;
    LATHE_UNROLL
    for (int i = 0; i < kRowTiles; ++i) load_a(f.a[i], a, i, step);
    LATHE_UNROLL
    for (int j = 0; j < kColumnTiles; j += 2) {
      unsigned pair[4];
      load_b(pair, b, j / 2, step);
      f.b[j][0] = pair[0], f.b[j][1] = pair[1], f.b[j + 1][0] = pair[2], f.b[j + 1][1] = pair[3];
    }
  }

  LATHE_DEVICE_MEMBER void multiply(const Fragments& f) {
    LATHE_UNROLL
    for (int i = 0; i < kRowTiles; ++i) LATHE_UNROLL
    for (int j = 0; j < kColumnTiles; ++j) {
      const int column = i % 2 ? kColumnTiles - 1 - j : j;  // back and forth: the last operand stays in its register
      Instruction<T>::run(acc[i][column], f.a[i], f.b[column]);
    }
  }

  // Writes the sums of rows [first, first + rows) of the warp's tile.
  LATHE_DEVICE_MEMBER void stage(Accumulator* to, int pitch, int first, int rows) const {
    stage_sums(acc, to, pitch, first, rows);
  }

 private:
  // Rows [16 * i, 16 * i + 16) of the warp's tile, one step of K. The permutation of a panel repeats every eight rows.
  LATHE_DEVICE_MEMBER static void load_a(unsigned (&r)[4], const char* panel, int i, int step) {
    const int l = lane();
    if constexpr (!kMnMajorA) {
      panel += PanelA::chunk_offset(warp_row() + l % 16, step * 2 + l / 16);
      ldmatrix_x4(r, panel + i * 16 * PanelA::kRowBytes);
    } else if constexpr (sizeof(T) == 2) {
      panel += PanelA::chunk_offset(l % 8 + l / 16 * 8, warp_row() / 8 + i * 2 + l / 8 % 2);
      ldmatrix_x4_trans(r, panel + step * 16 * PanelA::kRowBytes);
    } else {
      const int row = warp_row() + i * 16 + l / 4;
      panel += step * 8 * PanelA::kRowBytes;
      r[0] = word(panel + PanelA::offset(l % 4, row));
      r[1] = word(panel + PanelA::offset(l % 4, row + 8));
      r[2] = word(panel + PanelA::offset(l % 4 + 4, row));
      r[3] = word(panel + PanelA::offset(l % 4 + 4, row + 8));
    }
    round_words(r);
  }

  // Columns [16 * j, 16 * j + 16): the fragments of two instructions.
  LATHE_DEVICE_MEMBER static void load_b(unsigned (&r)[4], const char* panel, int j, int step) {
    const int l = lane();
    if constexpr (!kMnMajorB) {
      panel += PanelB::chunk_offset(warp_column() + l % 8 + l / 16 * 8, step * 2 + l / 8 % 2);
      ldmatrix_x4(r, panel + j * 16 * PanelB::kRowBytes);
    } else if constexpr (sizeof(T) == 2) {
      panel += PanelB::chunk_offset(l % 16, warp_column() / 8 + j * 2 + l / 16);
      ldmatrix_x4_trans(r, panel + step * 16 * PanelB::kRowBytes);
    } else {
      const int column = warp_column() + j * 16 + l / 4;
      panel += step * 8 * PanelB::kRowBytes;
      r[0] = word(panel + PanelB::offset(l % 4, column));
      r[1] = word(panel + PanelB::offset(l % 4 + 4, column));
      r[2] = word(panel + PanelB::offset(l % 4, column + 8));
      r[3] = word(panel + PanelB::offset(l % 4 + 4, column + 8));
    }
    round_words(r);
  }

  LATHE_DEVICE_MEMBER static unsigned word(const char* at) { return *reinterpret_cast<const unsigned*>(at); }

  LATHE_DEVICE_MEMBER static void round_words(unsigned (&r)[4]) {
    if constexpr (sizeof(T) == 4) {
      LATHE_UNROLL
      for (int i = 0; i < 4; ++i) r[i] = tf32_bits(bit_cast<float>(r[i]));
    }
  }
};

}  // namespace gemm
