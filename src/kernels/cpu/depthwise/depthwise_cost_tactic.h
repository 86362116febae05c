// SPDX-License-Identifier: Apache-2.0
// What tactics of depthwise convolutions share.
#pragma once

#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/depthwise/depthwise.h"

namespace lathe::cpu::depthwise {

// The shape of a convolution with one filter per channel and channels last, or why the problem is none.
tl::expected<Shape, std::string> shape_of(const Problem& problem);

std::string to_text(const DepthwiseConfig& config);

// Strips of pixels, each vector of channels by itself. Products take so many rows of the kernel at once.
double predicted_us(const Problem& problem, const Shape& shape, const DepthwiseConfig& config, int64_t rows_at_once);

}  // namespace lathe::cpu::depthwise
