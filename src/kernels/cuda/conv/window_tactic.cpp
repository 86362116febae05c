// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv/window_tactic.h"

#include <algorithm>

#include "kernels/cuda/gemm/epilogue_tactic.h"

namespace lathe::cuda::conv {

std::string window_type(const ConvShape& a, unsigned inside) {
  std::string text;
  for (const auto* values : {&a.kernel, &a.stride, &a.dilation, &a.pad})
    for (int64_t value : *values) text += fmt::format("{}{}", text.empty() ? "" : ", ", value);
  return fmt::format("conv::Window<{}, {}>", text, inside);
}

std::string pixels(Source& source, const Operand& output) {
  std::string extents;
  for (int d = output.rank() - 3; d < output.rank(); ++d)
    extents += fmt::format("{}{}", extents.empty() ? "" : ", ",
                           d < 2 ? "1L" : source.number(output.dims[static_cast<size_t>(d)]));
  return fmt::format("conv::Pixels{{{{{}}}, {{}}}}", extents);
}

int64_t opt_pixels(const Operand& output) {
  int64_t pixels = 1;
  for (size_t d = 0; d < output.opt_dims.size(); ++d) pixels *= d == 1 ? 1 : output.opt_dims[d];
  return pixels;
}

bool fits_window_loader(const Operand& input, int64_t pixels) {
  constexpr int64_t kMostRows = 256, kMost = int64_t{1} << 30;  // half of what fits: dims may exceed their optimum
  const int64_t images = kMostRows / std::max<int64_t>(pixels, 1) + 2;
  return input.opt_strides[0] < kMost / images;
}

int copy_width(const Operand& x, int64_t groups, int64_t channels) {
  Shape strides;  // of the beginnings of pixels
  for (size_t d = 0; d < x.dims.size(); ++d)
    if (d != 1 && x.dims[d] != Expr(1)) strides.push_back(x.strides[d]);
  if (groups > 1) strides.push_back(channels);
  strides.push_back(x.offset);
  return gemm::copy_width(x.dtype, strides);
}

unsigned axes_inside(const ConvShape& a, const Operand& x, const Operand& y) {
  unsigned inside = 0;
  for (size_t axis = 0; axis < 3; ++axis) {
    const size_t d = axis + x.dims.size() - 3;
    const bool is_one = a.kernel[axis] == 1 && a.pad[axis] == 0;
    if (is_one && (d < 2 || y.dims[d] == ceildiv(x.dims[d], a.stride[axis]))) inside |= 1u << axis;
  }
  return inside;
}

bool keeps_pixels(const Operand& x, const Operand& y) {
  return std::equal(x.dims.begin() + 2, x.dims.end(), y.dims.begin() + 2, y.dims.end());
}

bool has_one_pitch(const Operand& x) {
  Expr stride = 0;
  for (size_t d = x.dims.size(); d-- > 0;) {
    if (d == 1 || x.dims[d] == Expr(1)) continue;
    if (stride != Expr(0) && x.strides[d] != stride) return false;
    stride = x.strides[d] * x.dims[d];
  }
  return true;
}

Expr pixel_pitch(const Operand& x) {
  for (size_t d = x.dims.size(); d-- > 0;)
    if (d != 1 && x.dims[d] != Expr(1)) return x.strides[d];
  return 0;
}

}  // namespace lathe::cuda::conv
