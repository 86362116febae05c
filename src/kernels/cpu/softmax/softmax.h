// SPDX-License-Identifier: Apache-2.0
// Kernel `softmax`: e^x / sum of e^x along one axis, or the logarithm of that.
//   program  epilogue of the result, which reads nothing else
//   params   SoftmaxParams
//   inputs   0: f32, any strides
//   outputs  0: of the same shape, any strides: f32, which may be the input itself, or u8 or i8, of levels that the
//            epilogue makes
#pragma once

#include <cstdint>

#include "device/params.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu {

struct SoftmaxParams {
  int axis = 0;  // counts from 0
  bool log = false;
  static constexpr auto members() { return std::tuple(&SoftmaxParams::axis, &SoftmaxParams::log); }
};

// One contiguous row. In place is allowed.
LATHE_ISA_DECLARE(void softmax_row(const float* in, float* out, int64_t n, bool log))
// `columns` softmaxes side by side: element i of column c is in[i * in_stride + c].
LATHE_ISA_DECLARE(void softmax_columns(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t n,
                                       int64_t columns, bool log))

}  // namespace lathe::cpu
