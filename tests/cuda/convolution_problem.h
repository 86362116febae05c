// SPDX-License-Identifier: Apache-2.0
// Convolutions for tests of kernels.
#pragma once

#include "cuda/kernel_check.h"

namespace lathe::cuda {

// Small integers, whose sums are exact.
Tensor small_weights(DType type, Dims dims);

// The output is channels-last; its extents follow from the op's rule. `w` must outlive the problem.
Problem convolution_problem(const ConvolutionAttrs& attrs, Operand x, const Tensor& w);

// The same for transposed convolutions, [C, O / groups, taps...].
Problem deconvolution_problem(const DeconvolutionAttrs& attrs, Operand x, const Tensor& w);

}  // namespace lathe::cuda
