// SPDX-License-Identifier: Apache-2.0
// Fewer and longer loops over tensors of one shape.
#pragma once

#include "tuning/problem.h"

namespace lathe::cuda {

// The same tensors with as few dimensions as possible, at least 1: extents of 1 are dropped, dimensions ordered by the
// first tensor's strides (its smallest is last), and neighbours merged where all tensors step over both at once.
// All have the same dims; stride 0 broadcasts. Operands with padding may follow the first: their dimensions that are
// padded stay apart.
std::vector<Operand> collapse(std::vector<Operand> tensors);

// Whether every offset into the tensors surely fits 32 bits.
bool fits_32_bits(const std::vector<Operand>& tensors);

// Under the shapes that are tuned for.
int64_t opt_volume(const Operand& operand);
double opt_bytes(const Operand& operand);  // that are read or written: broadcast dimensions count once

// Microseconds of a kernel that does nothing but move so many bytes.
double memory_bound_us(const Target& target, double bytes);

}  // namespace lathe::cuda
