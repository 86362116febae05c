// SPDX-License-Identifier: Apache-2.0
// Loops over many floats in the widest registers that the processor has: packing that multiplies, and looking for the
// largest, are bound by arithmetic in registers of 16 bytes, and by memory in those of 64.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/isa_level.h"

namespace lathe {

// Of 16 lines of 16 floats, so many bytes apart: multiplies line i by factors[i] in f64, rounds once, and writes column
// i to columns[i], a whole cache line; past the caches (see Written) only where it is one of memory's.
using TransposeScaled = void (*)(const std::byte* from, int64_t step, const double* factors, std::byte* const* columns,
                                 bool past_caches);
// nullptr where the level has no registers of 64 bytes: those of 32 gain nothing over those of 16. The processor must
// have the level.
TransposeScaled transpose_scaled(cpu::IsaLevel level);

// The largest magnitude but for NaN; 0 of none.
float largest_magnitude(const float* from, int64_t count, cpu::IsaLevel level);

}  // namespace lathe
