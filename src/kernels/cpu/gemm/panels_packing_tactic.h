// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/gemm/panels.h"
#include "tuning/tactic.h"

namespace lathe::cpu::gemm {

// One of the axes that make up K: how far apart its elements are in the weights, and in rows of a panel.
struct KAxis {
  int64_t extent, from_stride, rows;
};

// What pack() does with a weight matrix whose columns are `column_stride` apart, as data.
Packing panels_packing(const Panels& panels, std::span<const KAxis> k, int64_t column_stride);
// What pack_pairs() does with the rounded weights: panels.k is pairs_of(k), and each pair has two elements.
Packing pairs_packing(const Panels& panels, int64_t k, int64_t k_stride, int64_t column_stride);
// Of so many matrices that lie one behind the other, before and after; rounded ones in pairs.
Packing matrices_packing(const Panels& panels, int64_t k, int64_t k_stride, int64_t column_stride, int64_t matrices,
                         bool in_pairs);
// Weights that are rounded to bf16, then packed: what they follow from says both.
Result<Packed> packed_pairs(const Operand& weights, Packing packing);

}  // namespace lathe::cpu::gemm
