// SPDX-License-Identifier: Apache-2.0
// The functions of the formulas in scalars.def for plain evaluation: doubles and integers of 64 bits. Not for code that
// is compiled per instruction set.
#pragma once

#include <cmath>

#include "base/dtype.h"

#define LATHE_MATH inline
namespace lathe::math {
#include "base/scalar_math.inc"
#include "base/scalar_math_f64.inc"
inline double pow(double a, double b) { return ::pow(a, b); }
inline double nearest_f16(double a) { return static_cast<double>(static_cast<float>(Half(static_cast<float>(a)))); }
inline double nearest_bf16(double a) {
  return static_cast<double>(static_cast<float>(BFloat16(static_cast<float>(a))));
}
}  // namespace lathe::math
#undef LATHE_MATH
