// SPDX-License-Identifier: Apache-2.0
// Weights of attention as 8-bit floats. A query's are 2^(x - reference) of its logits x, in units of log 2, rounded to
// f8e4m3fn; its mean is the sum of values times rounded weights, divided by the sum of the rounded weights and a sink's
// weight, which is not rounded. The reference is a whole number, so that kernels that see keys in turns may begin with
// a smaller one: what they rounded by then becomes right by a power of two, all but the last bits of the least weights.
#pragma once

#include <cmath>

#include "base/encoding.h"

namespace lathe {

// The largest weights are from 128 to 256: the least that is not 0 is 2^-18 of them or more.
inline constexpr int kFloat8WeightBits = 8;

inline double float8_reference(double largest_logit) { return std::ceil(largest_logit) - kFloat8WeightBits; }
inline double to_float8_weight(double weight) { return decode(DType::f8e4m3fn, encode(DType::f8e4m3fn, weight)); }

}  // namespace lathe
