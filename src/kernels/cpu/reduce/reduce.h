// SPDX-License-Identifier: Apache-2.0
// Kernel `reduce`: one value from each group of elements along some axes.
//   program  optional epilogue; input 0 is the reduced value, the others are the kernel's inputs 1, 2, ...
//   params   {operation, axes}: axes is a bit set of input 0's dimensions
//   inputs   0: f32, any strides; the epilogue's operands, f32, broadcast to the output's shape
//   outputs  0: f32; of the input's rank with dimensions of 1 for the axes, or without those dimensions
// Over no elements sum-like results are 0, a product is 1, a mean is NaN, a maximum -inf, a minimum +inf.
#pragma once

#include <cstdint>

namespace lathe::cpu {

enum class Reduction : int64_t {
  sum = 0,
  mean = 1,
  max = 2,
  min = 3,
  product = 4,
  l1 = 5,  // sum of |x|
  l2 = 6,  // sqrt of the sum of squares
  sum_squares = 7,
  log_sum = 8,      // log of the sum
  log_sum_exp = 9,  // log of the sum of e^x, stable
};

}  // namespace lathe::cpu
