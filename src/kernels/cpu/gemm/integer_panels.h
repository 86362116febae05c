// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "kernels/cpu/gemm/panels.h"

namespace lathe::cpu::gemm {

// Weights of products of integers: a matrix of floats, panels as ever, each of which holds four i8 along k; and behind
// them 128 times the sum of each column, by which products of i8 are too large once 128 makes them u8.
int64_t packed_integers(const Panels& fours, int64_t groups);
// Each column's K weights are contiguous, and those of the groups lie one after the other.
void pack_integers(const Panels& fours, int64_t groups, const int8_t* columns, std::span<int32_t> packed);

}  // namespace lathe::cpu::gemm
