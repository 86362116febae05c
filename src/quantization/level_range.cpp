// SPDX-License-Identifier: Apache-2.0
#include "quantization/level_range.h"

#include <algorithm>
#include <cmath>

#include "ops/quantization.h"
#include "quantization/thresholds.h"

namespace lathe {
namespace {

// A magnitude that is at most the largest one.
double threshold_of(const Histogram& histogram, const ActivationLevels& how) {
  using Method = CalibrationMethod;
  switch (how.method.value_or(is_factor_float8(how.type) ? Method::min_max : Method::entropy)) {
    case Method::min_max:
      return histogram.largest();
    case Method::percentile:
      return quantile_threshold(histogram, how.percentile / 100);
    case Method::entropy:
      break;
  }
  // All levels are for magnitudes where the values are of one sign.
  const bool one_sign = !how.symmetric && (histogram.lowest() == 0 || histogram.highest() == 0);
  return entropy_threshold(histogram, one_sign ? 256 : 128);
}

}  // namespace

double largest_level(DType type) { return type == DType::f8e4m3fn ? 448 : kLargestLevel; }
int64_t middle_level(DType type) { return type == DType::u8 ? 128 : 0; }

LevelScale scale_of(const Histogram& histogram, const ActivationLevels& how) {
  const double threshold = threshold_of(histogram, how);
  LevelScale found;
  found.low = std::max(histogram.lowest(), -threshold), found.high = std::min(histogram.highest(), threshold);
  const auto set_scale = [&](double step) {
    if (const auto narrow = static_cast<float>(step); narrow > 0) found.scale = static_cast<double>(narrow);
  };
  if (how.symmetric) {
    set_scale(threshold / largest_level(how.type));
    found.zero_point = middle_level(how.type);
    return found;
  }
  const IntegerRange range = *quantized_range(how.type);
  set_scale((found.high - found.low) / (range.high - range.low));
  found.zero_point =
      static_cast<int64_t>(std::clamp(range.low - std::nearbyint(found.low / found.scale), range.low, range.high));
  return found;
}

}  // namespace lathe
