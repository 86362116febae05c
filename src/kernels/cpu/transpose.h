// SPDX-License-Identifier: Apache-2.0
// Transposition of matrices of 4-byte elements, in registers.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa.h"

namespace lathe::cpu {

// target[r * target_stride + c] = source[c * source_stride + r]. Elements are moved as bits, whatever their type.
LATHE_ISA_DECLARE(void transpose_floats(float* target, int64_t target_stride, const float* source,
                                        int64_t source_stride, int64_t rows, int64_t columns))

}  // namespace lathe::cpu
