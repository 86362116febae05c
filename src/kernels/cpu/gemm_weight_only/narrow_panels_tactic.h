// SPDX-License-Identifier: Apache-2.0
// Packed weights as panels that kernels read.
#pragma once

#include <span>

#include "kernels/cpu/gemm_weight_only/gemm_weight_only.h"
#include "tuning/packed_weights.h"

namespace lathe::cpu::gemm {

// Of each of the matrices, which are alike in all but their numbers.
PackedPanels panels_of(std::span<const PackedWeights> weights);
WeightOnlyParams params_of(const PackedPanels& panels);
// Those of all, one behind the other: u8[panels.bytes() * matrices].
Result<Tensor> pack(std::span<const PackedWeights> weights, const PackedPanels& panels);
// Microseconds of so many rows by each of so many such matrices: products as those of tiles of floats, and the memory
// of what is packed.
double weight_only_us(const Target& target, const PackedWeights& weights, double rows, double matrices);

}  // namespace lathe::cpu::gemm
