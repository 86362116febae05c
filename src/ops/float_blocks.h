// SPDX-License-Identifier: Apache-2.0
// What is done to the floats of a block that a processor has in its first cache, at the pace of memory: those behind
// the block are prefetched. The processor must have the level.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "base/isa_level.h"

namespace lathe {

// Multiplies `count` floats in f64 and rounds once, to nearest even.
using ScaleFloats = void (*)(const float* from, int64_t count, double factor, float* to);
ScaleFloats scale_floats(cpu::IsaLevel level);

// The same, or floats as they are (`factor` is null), and rounds them to the bits that Half and BFloat16 give. Returns
// whether any result is infinite or NaN: who refuses numbers out of range looks again then.
using NarrowFloats = bool (*)(const float* from, int64_t count, const double* factor, std::byte* to);
// To f16 or bf16; nullptr for other types, and where the level has no instructions for it.
NarrowFloats narrow_floats(DType to, cpu::IsaLevel level);

}  // namespace lathe
