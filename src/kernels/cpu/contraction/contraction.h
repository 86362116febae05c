// SPDX-License-Identifier: Apache-2.0
// Kernel `contraction`: sums of products of two tensors over some of their axes, as an einsum has them, of f32, f64 and
// integers of 32 and 64 bits. Integers wrap.
//   program  none
//   params   {axes, then of each axis: the dimensions of a, of b and of the result that run along it, as bit sets}.
//            Every dimension runs along one axis; those of the result along one each. Axes that the result lacks are
//            summed over. Several dimensions of an operand along one axis are its diagonal; an extent of 1 repeats.
//   inputs   a, b, of any strides
//   outputs  one, of the inputs' type and of any strides
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu::contraction {

inline constexpr int kMaxAxes = 16;

// Blocks in which elements are multiplied: a[rows][kDepth], b[kDepth][kColumns], sums[rows][kColumns], rows <= kRows.
inline constexpr int64_t kRows = 64, kColumns = 64, kDepth = 256;

bool is_supported(DType type);

// sums += a * b, of which `depth` columns of a and rows of b count.
using Multiply = void(DType type, const void* a, const void* b, void* sums, int64_t rows, int64_t depth);

}  // namespace lathe::cpu::contraction

namespace lathe::cpu {
LATHE_ISA_DECLARE(contraction::Multiply multiply_blocks)
}  // namespace lathe::cpu
