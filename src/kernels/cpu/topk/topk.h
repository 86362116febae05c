// SPDX-License-Identifier: Apache-2.0
// Kernel `topk`: the k largest or smallest elements along an axis, best first, and their positions; of equals the lower
// position is first, NaN is the largest.
//   program  none
//   params   TopkParams
//   inputs   0: x of any type of numbers, any strides, at most 2^32 - 1 elements along the axis; a second one is not
//            read
//   outputs  0: the elements, of x's type; 1: their positions, i64; both have k elements along the axis, any strides
#pragma once

#include "device/params.h"

namespace lathe::cpu {

struct TopkParams {
  int axis = 0;  // counts from 0
  bool largest = true;
  static constexpr auto members() { return std::tuple(&TopkParams::axis, &TopkParams::largest); }
};

}  // namespace lathe::cpu
