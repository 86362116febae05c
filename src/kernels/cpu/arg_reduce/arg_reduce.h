// SPDX-License-Identifier: Apache-2.0
// Kernel `arg_reduce`: where along an axis the largest or smallest element is. NaN beats all others; of equals the
// first counts, or the last.
//   program  none
//   params   ArgReduceParams
//   inputs   0: x of any type of numbers, any strides, at most 2^31 - 1 elements along the axis
//   outputs  0: positions, i64, of x's dimensions without the axis, or with 1 in its place; any strides
#pragma once

#include "device/params.h"

namespace lathe::cpu {

struct ArgReduceParams {
  int axis = 0;  // counts from 0
  bool largest = true;
  bool last = false;  // of equals
  static constexpr auto members() {
    return std::tuple(&ArgReduceParams::axis, &ArgReduceParams::largest, &ArgReduceParams::last);
  }
};

}  // namespace lathe::cpu
