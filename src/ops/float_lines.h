// SPDX-License-Identifier: Apache-2.0
// Packing that multiplies: it is bound by arithmetic in registers of 16 bytes, and by memory in those of 64.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/isa_level.h"

namespace lathe {

// Factors of 16 lines of f32. Where all of them are floats, as those of folded batch normalisations are, a product of
// f64 is exact, and one multiplication of f32 gives the bits of f64 that is rounded once.
struct LineFactors {
  const double* wide;
  bool are_floats;
  alignas(64) std::array<float, 16> narrow;
};

struct ScaledTransposer {
  void (*prepare)(const double* factors, LineFactors& result) = nullptr;  // `factors` outlive the result
  // Of 16 lines of 16 floats, so many bytes apart: multiplies line i by its factor in f64, rounds once, and writes
  // column i to columns[i], a whole cache line; past the caches (see Written) only where it is one of memory's.
  void (*transpose)(const std::byte* from, int64_t step, const LineFactors& factors, std::byte* const* columns,
                    bool past_caches) = nullptr;
};
// Empty where the level has no registers of 64 bytes: those of 32 gain nothing over those of 16. The processor must
// have the level.
ScaledTransposer scaled_transposer(cpu::IsaLevel level);

}  // namespace lathe
