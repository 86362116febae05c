// SPDX-License-Identifier: Apache-2.0
// Which magnitude the largest level of 8 bits shall stand for: what lies beyond is clipped, and what lies within is
// rounded more finely the smaller it is.
#pragma once

#include <cstddef>

#include "quantization/histogram.h"

namespace lathe {

constexpr double kLargestLevel = 127;  // of a symmetric scale: -127 to 127

// The magnitude at which the values, clipped and rounded to that many levels, keep most of what they tell: the least
// Kullback-Leibler divergence from the histogram, of all that end at the edge of a bin (S. Migacz, "8-bit inference
// with TensorRT", GTC 2017). Zeros count for nothing.
double entropy_threshold(const Histogram& histogram, size_t levels = 128);

// The least magnitude that `quantile` of the values, zeros included, do not exceed; 1 gives the largest.
double quantile_threshold(const Histogram& histogram, double quantile);

}  // namespace lathe
