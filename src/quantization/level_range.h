// SPDX-License-Identifier: Apache-2.0
// From what a tensor held over batches to what its levels, integers or floats of 8 bits, stand for.
#pragma once

#include <optional>

#include "base/dtype.h"
#include "quantization/histogram.h"

namespace lathe {

enum class CalibrationMethod : uint8_t { entropy, min_max, percentile };

struct ActivationLevels {
  std::optional<CalibrationMethod> method;  // unless given, entropy of integers and min_max of floats
  double percentile = 99.99;                // of the magnitudes, in (0, 100]
  DType type = DType::i8;                   // or u8, or f8e4m3fn, which is symmetric
  bool symmetric = true;                    // the zero point is 0, of u8 128; else the levels end where the values do
};

// level = round(x / scale) + zero_point. The scale is one of f32.
struct LevelScale {
  double scale = 1;
  int64_t zero_point = 0;
  double low = 0, high = 0;  // the values that are kept; what lies beyond is clipped
};
LevelScale scale_of(const Histogram& histogram, const ActivationLevels& how);

// Of a symmetric scale: how far its levels reach from the zero point, and the zero point.
double largest_level(DType type);
int64_t middle_level(DType type);

}  // namespace lathe
