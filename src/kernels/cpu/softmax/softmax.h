// SPDX-License-Identifier: Apache-2.0
// Kernel `softmax`: e^x / sum of e^x along one axis, or the logarithm of that.
//   program  epilogue of the result, which reads nothing else
//   params   {axis, log}: axis counts from 0; log is 0 or 1
//   inputs   0: f32, any strides
//   outputs  0: f32, of the same shape, any strides; may be the input itself
#pragma once

#include <cstdint>

#include "kernels/cpu/isa.h"

namespace lathe::cpu {

// One contiguous row. In place is allowed.
LATHE_ISA_DECLARE(void softmax_row(const float* in, float* out, int64_t n, bool log))
// `columns` softmaxes side by side: element i of column c is in[i * in_stride + c].
LATHE_ISA_DECLARE(void softmax_columns(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t n,
                                       int64_t columns, bool log))

}  // namespace lathe::cpu
