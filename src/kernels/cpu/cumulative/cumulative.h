// SPDX-License-Identifier: Apache-2.0
// Kernel `cumulative`: sums or products of all elements up to each one along an axis.
//   program  none
//   params   {product, exclusive (without the element itself), reverse (from the end)}
//   inputs   0: x of any type of numbers, any strides; 1: the axis, one integer, which is an error of the run outside
//            [-rank, rank)
//   outputs  0: of x's type and shape, any strides
// Floats are summed in f64 and rounded once each; integers wrap.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu::cumulative {

inline constexpr int64_t kSide = 256;  // rows that are summed together, at most

struct Scan {
  bool product, exclusive, reverse;
};

// Rows: strides along the axis and from row to row.
struct Rows {
  const void* from;
  void* to;
  int64_t from_along, to_along, from_step, to_step, extent, count;
};

}  // namespace lathe::cpu::cumulative

namespace lathe::cpu {
LATHE_ISA_DECLARE(void scan_elements(DType type, const cumulative::Rows& rows, const cumulative::Scan& how))
}  // namespace lathe::cpu
