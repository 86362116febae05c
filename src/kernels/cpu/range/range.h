// SPDX-License-Identifier: Apache-2.0
// Kernel `range`: start, start + delta, start + 2 delta...
//   program  none
//   params   none
//   inputs   first: start, last: delta, one number each, of any type of numbers; one between them is not read
//   outputs  0: of their type, one dimension, any stride. Floats are computed in f64 and rounded once; integers wrap.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu {

// The elements [begin, end) of the sequence, to `to` + begin * step and so on.
LATHE_ISA_DECLARE(void count_up(DType type, const void* start, const void* delta, int64_t begin, int64_t end, void* to,
                                int64_t step))

}  // namespace lathe::cpu
