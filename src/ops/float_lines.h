// SPDX-License-Identifier: Apache-2.0
// Packing that multiplies: it is bound by arithmetic in registers of 16 bytes, and by memory in those of 64.
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

}  // namespace lathe
