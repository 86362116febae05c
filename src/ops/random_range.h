// SPDX-License-Identifier: Apache-2.0
// What evaluation and kernels of `random` must agree on.
#pragma once

#include "ops/attributes.h"

namespace lathe {

// Digits of a uniform number in [0, 1) before it is scaled: as many as the type holds, so that it stays below 1.
constexpr int random_digits(DType dtype) {
  return dtype == DType::f64 ? 53 : dtype == DType::f32 ? 24 : dtype == DType::f16 ? 11 : 8;
}

// The largest number of the type below `b`: uniform numbers that rounding would take up to `b` become that.
double last_in_range(const RandomAttrs& attrs);

}  // namespace lathe
