// SPDX-License-Identifier: Apache-2.0
// Kernel `reduce`: one value from each group of elements along some axes.
//   program  optional epilogue; input 0 is the reduced value, the others are the kernel's inputs 1, 2, ...
//   params   ReduceParams
//   inputs   0: f32, any strides; the epilogue's operands, f32, broadcast to the output's shape
//   outputs  0: f32; of the input's rank with dimensions of 1 for the axes, or without those dimensions
// Over no elements sum-like results are 0, a product is 1, a mean is NaN, a maximum -inf, a minimum +inf.
#pragma once

#include <cstdint>

#include "device/params.h"
#include "device/tensor_arg.h"

namespace lathe::cpu {

// In the order of the op's enumeration.
enum class Reduction : int64_t {
  sum,
  product,
  max,
  min,
  mean,
  l1,           // sum of |x|
  l2,           // sqrt of the sum of squares
  log_sum,      // log of the sum
  log_sum_exp,  // log of the sum of e^x, stable
  sum_squares,
};

struct ReduceParams {
  Reduction op = Reduction::sum;
  uint32_t axes = 0;  // a bit set of input 0's dimensions
  static constexpr auto members() { return std::tuple(&ReduceParams::op, &ReduceParams::axes); }
  bool are_valid() const { return op >= Reduction::sum && op <= Reduction::sum_squares && axes >> kMaxRank == 0; }
};

}  // namespace lathe::cpu
