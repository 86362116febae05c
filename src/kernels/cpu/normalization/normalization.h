// SPDX-License-Identifier: Apache-2.0
// Kernel `normalization`: layer, RMS, instance and group normalization:
// y = (x - mean) / sqrt(variance + epsilon) * scale + bias.
//   program  optional epilogue; input 0 is the normalized value, the others are the kernel's inputs after the bias
//   params   NormalizationParams
//   inputs   0: x, f32; [scale]; [bias]; the epilogue's operands: f32, broadcast to the shape of x; any strides
//   outputs  0: y, of the shape of x, any strides: f32, which may be x itself, or u8 or i8, of levels that the epilogue
//   makes
#pragma once

#include <cstdint>

#include "device/params.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu {

struct NormalizationParams {
  bool subtract_mean = true;  // else (RMS) the mean is taken as 0
  uint32_t axes = 0;          // bit set of the dimensions that mean and variance run over
  float epsilon = 0;
  bool has_scale = false, has_bias = false;
  int64_t groups = 1;  // above 1, dimension 1 counts as two, the groups and the channels of one, also in axes
  static constexpr auto members() {
    return std::tuple(&NormalizationParams::subtract_mean, &NormalizationParams::axes, &NormalizationParams::epsilon,
                      &NormalizationParams::has_scale, &NormalizationParams::has_bias, &NormalizationParams::groups);
  }
};

// One value for a row (step 0), or one for each element (step 1).
struct RowOperand {
  const float* data;
  int step;
};

// y[i] = (x[i] - mean[i]) * rstd[i] * scale[i] + bias[i]
LATHE_ISA_DECLARE(void normalize_row(const float* x, float* y, int64_t n, RowOperand mean, RowOperand rstd,
                                     RowOperand scale, RowOperand bias))

}  // namespace lathe::cpu
