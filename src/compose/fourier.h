// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/builder.h"

namespace lathe {

struct FourierTransform {
  int64_t parts = 1;      // of each input: 1 = real, 2 = real and imaginary
  bool inverse = false;   // divides by the number of points
  bool onesided = false;  // the bins up to the middle; an inverse takes these and gives real numbers
};

// x[..., length, parts] -> [..., bins, 2], or [..., points, 1] of an inverse of one side. `points`, i64[1], of the
// transform: inputs beyond them are left out, missing ones are 0.
ir::Value* fourier_transform(ir::GraphBuilder& c, ir::Value* x, ir::Value* points, const FourierTransform& how);

}  // namespace lathe
