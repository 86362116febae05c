// SPDX-License-Identifier: Apache-2.0
// Kernel `contraction`: sums of products of two tensors over some of their axes, as an einsum has them, of f32, f64 and
// integers. Integers wrap.
//   program  none
//   params   ContractionParams. Every dimension runs along one axis; those of the result along one each. Axes that the
//            result lacks are summed over. Several dimensions of an operand along one axis are its diagonal; an extent
//            of 1 repeats.
//   inputs   a, b, of any strides
//   outputs  one, of any strides and of the inputs' type; of 8-bit integers, which may differ in their sign, or i32
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/dtype.h"
#include "device/params.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu::contraction {

inline constexpr int kMaxAxes = 16;

enum OperandIndex { kA, kB, kResult, kOperands };

struct ContractionAxis {
  std::array<uint32_t, kOperands> dims{};  // bit sets of the dimensions that run along it
  static constexpr auto members() { return std::tuple(&ContractionAxis::dims); }
};
struct ContractionParams {
  std::vector<ContractionAxis> axes;
  static constexpr auto members() { return std::tuple(&ContractionParams::axes); }
};

// Blocks in which elements are multiplied: a[rows][kDepth], b[kDepth][kColumns], sums[rows][kColumns], rows <= kRows.
inline constexpr int64_t kRows = 64, kColumns = 64, kDepth = 256;

bool is_supported(DType a, DType b, DType result);

// sums += a * b, all of the lane's type, of which `depth` columns of a and rows of b count, and `columns` of b.
using Multiply = void(DType lane, const void* a, const void* b, void* sums, int64_t rows, int64_t depth,
                      int64_t columns);

}  // namespace lathe::cpu::contraction

namespace lathe::cpu {
LATHE_ISA_DECLARE(contraction::Multiply multiply_blocks)
}  // namespace lathe::cpu
