// SPDX-License-Identifier: Apache-2.0
// Convolutions for tests of kernels.
#pragma once

#include "kernels/cuda/kernel_check.h"

namespace lathe::cuda {

// Small integers, whose sums are exact.
Tensor small_weights(DType type, Dims dims);

// i8, or u8, over its whole range.
Tensor any_levels(Dims dims, uint32_t seed);
Tensor any_unsigned_levels(Dims dims, uint32_t seed);
// Positive numbers around 2^-10, whose products with integers are exact.
Tensor small_scales(Dims dims);

// The output is channels-last, of the type of the op's result; its extents follow from the op's rule. `w` must outlive
// the problem.
Problem convolution_problem(const ConvolutionAttrs& attrs, Operand x, const Tensor& w);

// The same for transposed convolutions, [C, O / groups, taps...].
Problem deconvolution_problem(const DeconvolutionAttrs& attrs, Operand x, const Tensor& w);

}  // namespace lathe::cuda
