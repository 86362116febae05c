// SPDX-License-Identifier: Apache-2.0
// Kernel `compress`: what a condition selects along an axis. It has two steps, as the size of its result is only known
// between them.
//   program  none
//   params   CompressParams
// The first step lists what is selected; a position beyond the axis is an error of the run.
//   inputs   0: x, of which only the dimensions are read; 1: condition, bool [m]
//   outputs  0: found, i64 [m + 1], dense: the positions that are selected; the last element is how many there are
// The second one copies.
//   inputs   0: x of any type; 1: found
//   outputs  0: of x's type and, but along the axis, dimensions; any strides
#pragma once

#include "device/params.h"

namespace lathe::cpu {

struct CompressParams {
  bool writes = false;  // whether it is the second step
  int axis = -1;        // counts from 0; -1: x must be dense, and counts as a list
  static constexpr auto members() { return std::tuple(&CompressParams::writes, &CompressParams::axis); }
};

}  // namespace lathe::cpu
