// SPDX-License-Identifier: Apache-2.0
// Convolutions of f64, and pooling of what is not f32, as products and maxima over the taps of their window;
// convolutions of computed 1x1 kernels as products of matrices.
#pragma once

#include "passes/rewrite.h"

namespace lathe {

Result<bool> decompose_convolution(Rewrite& rewrite);
Result<bool> multiply_pixels(Rewrite& rewrite);
Result<bool> decompose_pooling(Rewrite& rewrite);

}  // namespace lathe
