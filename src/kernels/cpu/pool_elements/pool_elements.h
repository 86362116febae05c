// SPDX-License-Identifier: Apache-2.0
// Kernel `pool_elements`: pooling of elements of any type over the last dimensions, of any window, with positions of
// maxima and with padding that may follow from extents that vary. What kernel `pooling` does not take.
//   program  none
//   params   PoolElementsParams
//   inputs   0: x, of numbers, any strides
//   outputs  0: of x's type, any strides; 1, of a maximum alone and optional: i64, where each maximum stands in x, as
//   an
//            offset in row-major order
// The first of equal elements is the maximum, and NaN is greater than all others. Where a window lies in the padding
// alone, a maximum is the least float, 0 or INT64_MIN, at position 0, and the average NaN.
#pragma once

#include <vector>

#include "device/params.h"
#include "kernels/padding_rule.h"

namespace lathe::cpu {

// Numbers are written into plans.
enum class PoolKind : int8_t { maximum = 0, average = 1, norm = 2 };

struct PoolElementsParams {
  struct Axis {
    int64_t kernel = 1, stride = 1, dilation = 1;
    PaddingRule rule = PaddingRule::given;
    int64_t begin = 0, end = 0;  // where the rule is that they are given
    static constexpr auto members() {
      return std::tuple(&Axis::kernel, &Axis::stride, &Axis::dilation, &Axis::rule, &Axis::begin, &Axis::end);
    }
  };

  PoolKind kind = PoolKind::maximum;
  bool count_include_pad = false;  // of averages
  bool column_major = false;       // of positions: in their plane the first axis is the fastest
  int64_t exponent = 2;            // of norms
  std::vector<Axis> axes;
  static constexpr auto members() {
    using P = PoolElementsParams;
    return std::tuple(&P::kind, &P::count_include_pad, &P::column_major, &P::exponent, &P::axes);
  }
};

}  // namespace lathe::cpu
