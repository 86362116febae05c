// SPDX-License-Identifier: Apache-2.0
// Text for conv/window.cuh.
#pragma once

#include <string>

#include "kernels/conv_shape_tactic.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda::conv {

// `inside`: the axes, as bits, that axes_inside() gives, along which taps are not compared with the image's borders.
std::string window_type(const ConvShape& attributes, unsigned inside = 0);
unsigned axes_inside(const ConvShape& attributes, const Operand& x, const Operand& y);
std::string pixels(Source& source, const Operand& output);  // a conv::Pixels
int64_t opt_pixels(const Operand& output);                  // of all images

// Whether WindowLoader's offsets between the pixels of a panel's rows fit 32 bits. `pixels`: rows of each image.
bool fits_window_loader(const Operand& input, int64_t pixels);

// Channels that can be copied at once from any pixel and group, of `channels` each. 1 when that is less than 4 bytes.
int copy_width(const Operand& x, int64_t groups, int64_t channels);

// Whether the result has as many pixels as the input along each dimension. Windows of one element, without strides and
// without padding at the beginning, have more where there is some at the end.
bool keeps_pixels(const Operand& x, const Operand& y);

// Whether the pixels of all images follow each other at one distance, and that distance.
bool has_one_pitch(const Operand& x);
Expr pixel_pitch(const Operand& x);

}  // namespace lathe::cuda::conv
