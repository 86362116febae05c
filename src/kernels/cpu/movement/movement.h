// SPDX-License-Identifier: Apache-2.0
// Kernel `movement`: a tensor whose element [j0, j1...] is that of another one at [m0(j0), m1(j1)...], or a value where
// one of the maps leads nowhere.
//   program  none
//   params   MovementParams
//   inputs   those of the op of that name, in its order: slice: x, starts, ends, axes?, steps?; pads: x, pads, value?,
//            axes?; repeat (tile and expand): x and anything. x is of any type and strides, lists are of any integer
//            type. Omitted ones have no data.
//   outputs  0: of x's type, any strides; its dimensions are those that the op's shape rule gives
// Lists that lead out of x are an error of the run.
#pragma once

#include "device/params.h"

namespace lathe::cpu {

enum class Movement : int64_t { slice = 0, pad_constant = 1, pad_reflect = 2, pad_edge = 3, pad_wrap = 4, repeat = 5 };

struct MovementParams {
  Movement mode = Movement::slice;
  static constexpr auto members() { return std::tuple(&MovementParams::mode); }
};

}  // namespace lathe::cpu
