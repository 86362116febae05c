// SPDX-License-Identifier: Apache-2.0
// Kernel `lookup`: a table's entry for each integer of 8 bits.
//   program  none
//   params   none
//   inputs   0: the table, 256 elements of i8 or u8, stride 1; 1: indices, u8 or i8, of which negative ones count from
//            the end, any strides
//   outputs  0: of the table's type and the indices' shape, any strides
#pragma once

#include <cstdint>

#include "kernels/cpu/isa.h"

namespace lathe::cpu {

// to[i] = table[from[i]]. `permutes`: whether the CPU has VBMI, which the levels do not include.
LATHE_ISA_DECLARE(void look_up(const uint8_t* table, const uint8_t* from, uint8_t* to, int64_t count, bool permutes))

}  // namespace lathe::cpu
