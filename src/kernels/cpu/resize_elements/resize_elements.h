// SPDX-License-Identifier: Apache-2.0
// Kernel `resize_elements`: resizing of tensors of any type by any rule, with scales or sizes that are read while
// running. What kernel `resize` does not take.
//   program  none
//   params   ResizeElementsParams
//   inputs   those of the op, in its order: x, roi?, scales?, sizes?; x of any type and strides, lists dense, roi and
//            scales of floats and sizes of integers. Of scales and sizes the one that counts is there; roi is read by
//            rules that crop alone. Omitted ones have no dims or lie beyond the list's end.
//   outputs  0: of x's type, of any strides; its dims are those that the op's shape rule gives
// Interpolates in doubles; integers are rounded to the nearest, ties to even, and saturate. Nearest elements are
// copied.
#pragma once

#include <vector>

#include "device/params.h"
#include "kernels/cpu/resize/samples.h"

namespace lathe::cpu {

// What sizes say of the scale, one for all axes unless they are stretched. Numbers are written into plans.
enum class SizePolicy : int8_t { stretch = 0, not_larger = 1, not_smaller = 2 };

struct ResizeElementsParams {
  SampleRule rule;  // nearest elements have no antialiasing
  double extrapolation = 0;
  bool by_sizes = false;  // not by scales
  SizePolicy policy = SizePolicy::stretch;
  std::vector<int> axes;  // as lists have them; counted from 0
  static constexpr auto members() {
    using P = ResizeElementsParams;
    return std::tuple(&P::rule, &P::extrapolation, &P::by_sizes, &P::policy, &P::axes);
  }
};

}  // namespace lathe::cpu
