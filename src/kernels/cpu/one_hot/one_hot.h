// SPDX-License-Identifier: Apache-2.0
// Kernel `one_hot`: the off value everywhere but where an index along the axis says on. Negative indices count from the
// end; those that lie outside leave their row off.
//   program  none
//   params   OneHotParams
//   inputs   first: indices of any type of numbers, any strides; floats are truncated. Last: {off, on}, of any type. An
//            input between them, the op's depth, is not read.
//   outputs  0: of the values' type, of the indices' dimensions with the axis added, any strides
#pragma once

#include "device/params.h"

namespace lathe::cpu {

struct OneHotParams {
  int axis = 0;  // of the output; counts from 0
  static constexpr auto members() { return std::tuple(&OneHotParams::axis); }
};

}  // namespace lathe::cpu
