// SPDX-License-Identifier: Apache-2.0
// Kernel `cumulative`: sums or products of all elements up to each one along an axis.
//   program  none
//   params   Scan
//   inputs   0: x of any type of numbers, any strides; 1: the axis, one integer, which is an error of the run outside
//            [-rank, rank)
//   outputs  0: of x's type and shape, any strides
// Floats are summed in f64 and rounded once each; integers wrap.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "device/params.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu::cumulative {

inline constexpr int64_t kSide = 256;  // rows that are summed together, at most

struct Scan {
  bool product = false;
  bool exclusive = false;  // without the element itself
  bool reverse = false;    // from the end
  static constexpr auto members() { return std::tuple(&Scan::product, &Scan::exclusive, &Scan::reverse); }
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
