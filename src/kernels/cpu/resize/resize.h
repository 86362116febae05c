// SPDX-License-Identifier: Apache-2.0
// Kernel `resize`: separable interpolation along some axes: nearest, linear, cubic, antialiased, or any other that can
// be stated as tables. Element j of a resized axis is the sum over taps t of weight[j][t] * x[index[j][t]].
//   program  of levels: what becomes of what is interpolated, of one input; else none
//   params   ResizeParams
//   inputs   0: x, f32, of any strides; or u8 or i8: of which elements are copied, of one tap each, or levels, of a
//            scale; then, unless the tables are made while running, for each resized dimension, in ascending order:
//            index, i32, dense, [extent of y, taps] (values are clamped to x), and weight, f32, or f64 for levels,
//            dense, of the same shape; where they are, the op's other inputs may follow, which are not read
//   outputs  0: y, of x's type, of the extents of x in the other dimensions, any strides; of levels f32, u8 or i8
// Fast where a dimension that is not resized (the channels) is contiguous in x and y.
#pragma once

#include <cstdint>
#include <vector>

#include "device/params.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/level_sums.h"
#include "kernels/cpu/resize/samples.h"

namespace lathe::cpu {

struct ResizeParams {
  uint32_t axes = 0;  // bit set of the dimensions to resize
  // Where the tables are made while running:
  bool makes_tables = false;
  SampleRule rule = {};
  std::vector<float> scales = {};  // of each resized dimension, in ascending order; 0 = the extents' ratio
  ByteScale levels = {};
  static constexpr auto members() {
    using P = ResizeParams;
    return std::tuple(&P::axes, &P::makes_tables, &P::rule, &P::scales, &P::levels);
  }
  static constexpr size_t kAddedMembers = 1;
};

// y[c] = sum over t of weights[t] * taps[t][c]
LATHE_ISA_DECLARE(void blend_rows(const float* const* taps, const float* weights, int count, int64_t n, float* y))

// y[j * y_stride] = sum over t of weights[j * taps + t] * row[index[j * taps + t]]
LATHE_ISA_DECLARE(void gather_row(const float* row, const int32_t* index, const float* weights, int64_t taps, int64_t n,
                                  float* y, int64_t y_stride))

}  // namespace lathe::cpu
