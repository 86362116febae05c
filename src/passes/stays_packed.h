// SPDX-License-Identifier: Apache-2.0
// Weight-only quantisation: weights of 4 and 8 bits that products of floats dequantise as they read them.
#pragma once

#include "ir/graph.h"
#include "ops/arithmetic.h"

namespace lathe {

// Whether the result of a dequantisation is never written: of constants, with scales that 16 neighbours along K share,
// or all, that nothing reads but matmuls as their second factor; 8 bits only if the first one is not of 8 bits, too.
// Transpositions and casts to other floats between them are on their way into either.
bool stays_packed(const ir::Node& node, const Arithmetic& arithmetic);

// How many neighbours along each dimension of what is dequantised share an element of operand 1, the scale, or 2, the
// zero point.
Dims blocks_of(const ir::Node& dequantize, size_t operand);

}  // namespace lathe
