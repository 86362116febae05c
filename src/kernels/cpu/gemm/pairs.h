// SPDX-License-Identifier: Apache-2.0
// Factors of products of bf16: f32 are rounded and lie in pairs, neighbours along K, each in the place of a float of
// matrices of floats. Of an odd K the last pair has a 0.
#pragma once

#include <cstdint>

#include "base/divide.h"
#include "kernels/cpu/gemm/panels.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu::gemm {

inline int64_t pairs_of(int64_t k) { return ceil_div<int64_t>(k, 2); }

inline constexpr int64_t kLeastCopy = 16 << 10;  // elements whose rounding is worth another thread

// As pack(), of panels of pairs: B has `k` rows, where panels.k is pairs_of(k).
void pack_pairs(const Panels& panels, int64_t k, const float* source, int64_t k_stride, int64_t n_stride, int64_t first,
                int64_t last, float* packed);

}  // namespace lathe::cpu::gemm

namespace lathe::cpu {
// A row's `count` elements, which may be where the pairs go.
LATHE_ISA_DECLARE(void pair_neighbours(const float* row, int64_t count, float* pairs, bool multiplies_bf16))
// The same, of which 16 pairs lie together, `step` floats from the 16 before; behind the last are zeros. For matrix
// registers, whose CPUs have the instruction.
LATHE_ISA_DECLARE(void pair_neighbours_in_blocks(const float* row, int64_t count, float* pairs, int64_t step))
// Those of two rows; null = zeros.
LATHE_ISA_DECLARE(void pair_rows(const float* first, const float* second, int count, float* pairs,
                                 bool multiplies_bf16))
}  // namespace lathe::cpu
