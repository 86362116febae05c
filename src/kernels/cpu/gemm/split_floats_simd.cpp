// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/split_floats.h"

#include "kernels/cpu/gemm/matrix_registers.h"
#include "kernels/cpu/gemm/pair_lanes.h"

namespace lathe::cpu::LATHE_ISA {

#if defined(LATHE_ISA_LEVEL_avx512)
namespace {

using gemm::kSplitDepth;
using gemm::kTerms;
using gemm::SplitTile;

// Pairs of terms of two vectors, the first in the lower halves; kRounds: to the nearest, where else they are cut off.
// If neither factor were rounded, what is left out of products would have one sign. Half is rounded away from zero. The
// last term is exact either way, and is not rounded, so that it is no number where the float is none.
template <bool kRounds>
LATHE_INLINE void store_terms(Vec first, Vec second, float* to, int64_t block) {
  LATHE_UNROLL
  for (int term = 0; term < kTerms; ++term) {
    const uint32_t half = kRounds && term + 1 < kTerms ? 0x8000 : 0;
    const auto term_of = [](Vec x, uint32_t half) { return (UintVec(as_int(x)) + half) & 0xffff0000u; };
    const UintVec low = term_of(first, half), high = term_of(second, half);
    store(to + term * block, as_float(IntVec(low >> 16 | high)));
    first -= as_float(IntVec(low));
    second -= as_float(IntVec(high));
  }
}

LATHE_INLINE Vec load_up_to(const float* from, int64_t count) {
  return count >= kLanes ? load(from) : count <= 0 ? zero() : load_tail(from, static_cast<int>(count));
}

void split_row(const float* row, int64_t count, int64_t steps, float* to, int64_t block) {
  constexpr std::make_integer_sequence<int, kLanes> lanes;
  for (int64_t k = 0; k < steps * kSplitDepth; k += kSplitDepth, to += kTerms * block) {
    const Vec a = load_up_to(row + k, count - k), b = load_up_to(row + k + kLanes, count - k - kLanes);
    store_terms<true>(every_second<0>(a, b, lanes), every_second<1>(a, b, lanes), to, block);
  }
}

void split_columns(const float* b, int64_t stride, int64_t rows, int64_t steps, int halves, float* to) {
  constexpr int64_t kRegister = int64_t{kMatrixRegisterRows} * kDepth;
  const int64_t block = halves * kRegister;
  int64_t k = 0;
  for (int64_t step = 0; step < steps; ++step, to += kTerms * block)
    for (int i = 0; i < kMatrixRegisterRows; ++i, k += 2)
      for (int v = 0; v < halves; ++v) {
        const float* pair = b + k * stride + v * kLanes;
        store_terms<false>(k < rows ? load(pair) : zero(), k + 1 < rows ? load(pair + stride) : zero(),
                           to + v * kRegister + i * kDepth, block);
      }
}

template <int kBlocks, int kHalves>
LATHE_INLINE void multiply_terms() {
  Pairs::add<0, kA, kB>();
  if constexpr (kHalves == 2) Pairs::add<1, kA, kB + 1>();
  if constexpr (kBlocks == 2) Pairs::add<2, kA + 1, kB>();
  if constexpr (kBlocks == 2 && kHalves == 2) Pairs::add<3, kA + 1, kB + 1>();
}

// Each product but the first loads one factor anew; small products come first.
template <int kBlocks, int kHalves>
LATHE_INLINE void multiply_steps(const SplitTile& tile) {
  constexpr int64_t kRegister = int64_t{kMatrixRegisterRows} * kDepth;
  const int64_t block = int64_t{tile.height} * kDepth;
  const float *a = tile.a, *b = tile.b;
  const float* next = tile.next;
  const auto load_a = [&](int term) {
    load_matrix<kA>(a + term * block, 64);
    if constexpr (kBlocks == 2) load_matrix<kA + 1>(a + tile.a_next + term * block, 64);
  };
  const auto load_b = [&](int term) {
    load_matrix<kB>(b + term * kHalves * kRegister, 64);
    if constexpr (kHalves == 2) load_matrix<kB + 1>(b + (term * kHalves + 1) * kRegister, 64);
  };
  for (int64_t step = 0; step < tile.steps; ++step, a += kTerms * block, b += kTerms * kHalves * kRegister) {
    for (int row = 0; row < tile.next_rows; ++row, next += tile.next_stride) {
      prefetch_l2(next);
      prefetch_l2(next + kLanes);
    }
    load_a(0), load_b(2), multiply_terms<kBlocks, kHalves>();
    load_b(1), multiply_terms<kBlocks, kHalves>();
    load_a(1), multiply_terms<kBlocks, kHalves>();
    load_b(0), multiply_terms<kBlocks, kHalves>();
    load_a(2), multiply_terms<kBlocks, kHalves>();
    load_a(0), multiply_terms<kBlocks, kHalves>();
  }
}

template <int kBlocks, int kHalves>
void multiply_tile(const SplitTile& tile) {
  float *first = tile.sums, *second = first + tile.height * tile.stride;
  const int64_t stride = tile.stride * 4;
  if (tile.adds) {
    load_matrix<0>(first, stride);
    if constexpr (kHalves == 2) load_matrix<1>(first + kDepth, stride);
    if constexpr (kBlocks == 2) load_matrix<2>(second, stride);
    if constexpr (kBlocks == 2 && kHalves == 2) load_matrix<3>(second + kDepth, stride);
  } else {
    clear_matrix<0>(), clear_matrix<1>(), clear_matrix<2>(), clear_matrix<3>();
  }
  multiply_steps<kBlocks, kHalves>(tile);
  store_matrix<0>(first, stride);
  if constexpr (kHalves == 2) store_matrix<1>(first + kDepth, stride);
  if constexpr (kBlocks == 2) store_matrix<2>(second, stride);
  if constexpr (kBlocks == 2 && kHalves == 2) store_matrix<3>(second + kDepth, stride);
}

void multiply(const SplitTile& tile) {
  configure({tile.height, tile.height}, kDepth, tile.configured);
  if (tile.blocks == 2)
    (tile.halves == 2 ? multiply_tile<2, 2> : multiply_tile<2, 1>)(tile);
  else
    (tile.halves == 2 ? multiply_tile<1, 2> : multiply_tile<1, 1>)(tile);
}

bool are_finite(const float* sums, int64_t stride, int rows, int halves) {
  IntVec none{};
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < halves; ++v) {
      const Vec difference = load(sums + r * stride + v * kLanes) - load(sums + r * stride + v * kLanes);
      none |= difference != difference;
    }
  return _mm512_test_epi32_mask(reinterpret_cast<__m512i>(none), reinterpret_cast<__m512i>(none)) == 0;
}

}  // namespace

const gemm::SplitFunctions* split_functions() {
  static const gemm::SplitFunctions functions{split_row, split_columns, multiply, are_finite, release_matrices};
  return &functions;
}

#else

const gemm::SplitFunctions* split_functions() { return nullptr; }

#endif

}  // namespace lathe::cpu::LATHE_ISA
