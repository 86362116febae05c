// SPDX-License-Identifier: Apache-2.0
// The sliding window of a convolution: which input pixel a tap of an output pixel reads. Axes are D H W; what the rank
// lacks has extent 1.
#pragma once

#include "lib/tensor.cuh"

namespace conv {

// kInside: the axes, as bits, along which no tap of any output pixel lies beyond the image.
template <int kKernelD, int kKernelH, int kKernelW, int kStrideD, int kStrideH, int kStrideW, int kDilationD,
          int kDilationH, int kDilationW, int kPadD, int kPadH, int kPadW, int kInside>
struct Window {
  static constexpr int kTaps = kKernelD * kKernelH * kKernelW;
  LATHE_DEVICE_MEMBER static constexpr int kernel(int axis) {
    return axis == 0 ? kKernelD : axis == 1 ? kKernelH : kKernelW;
  }
  LATHE_DEVICE_MEMBER static constexpr int stride(int axis) {
    return axis == 0 ? kStrideD : axis == 1 ? kStrideH : kStrideW;
  }
  LATHE_DEVICE_MEMBER static constexpr int dilation(int axis) {
    return axis == 0 ? kDilationD : axis == 1 ? kDilationH : kDilationW;
  }
  LATHE_DEVICE_MEMBER static constexpr int pad(int axis) { return axis == 0 ? kPadD : axis == 1 ? kPadH : kPadW; }
  LATHE_DEVICE_MEMBER static constexpr bool stays_inside(int axis) { return (kInside >> axis & 1) != 0; }
};

// Of tensors N C [[D] H] W.
template <class Tensor>
LATHE_DEVICE int axis_extent(const Tensor& tensor, int axis) {
  const int d = axis + Tensor::kRank - 3;
  return d < 2 ? 1 : static_cast<int>(tensor.dim(d));
}
template <class Tensor>
LATHE_DEVICE long axis_stride(const Tensor& tensor, int axis) {
  const int d = axis + Tensor::kRank - 3;
  return d < 2 ? 0 : tensor.stride(d);
}

// Extents of the output's axes. `origin` is added to all input pixels.
struct Pixels {
  long extent[3];
  int origin[3];
};

// Where the window of an output pixel begins: the image, and the input pixel of its first tap (may be outside).
struct Corner {
  long image;
  int at[3];
};

template <class Window>
LATHE_DEVICE Corner corner_of(const Pixels& pixels, long row) {
  auto rest = static_cast<unsigned>(row);
  Corner corner;
  LATHE_UNROLL
  for (int axis = 2; axis >= 0; --axis) {
    const auto extent = static_cast<unsigned>(pixels.extent[axis]);
    corner.at[axis] = static_cast<int>(rest % extent) * Window::stride(axis) - Window::pad(axis) + pixels.origin[axis];
    rest /= extent;
  }
  corner.image = rest;
  return corner;
}

// A tap, and the steps to the next in row-major order.
template <class Window>
struct Tap {
  int at[3];

  LATHE_DEVICE_MEMBER void start(int index) {
    at[2] = index % Window::kernel(2);
    at[1] = index / Window::kernel(2) % Window::kernel(1);
    at[0] = index / Window::kernel(2) / Window::kernel(1);
  }
  LATHE_DEVICE_MEMBER void next() {
    if (++at[2] < Window::kernel(2)) return;
    at[2] = 0;
    if (++at[1] < Window::kernel(1)) return;
    at[1] = 0;
    ++at[0];
  }
  LATHE_DEVICE_MEMBER void advance(int taps) {
    start((at[0] * Window::kernel(1) + at[1]) * Window::kernel(2) + at[2] + taps);
  }
  LATHE_DEVICE_MEMBER bool exists() const { return at[0] < Window::kernel(0); }
  // Elements from the first tap's pixel.
  template <class Tensor>
  LATHE_DEVICE_MEMBER long offset(const Tensor& x) const {
    long offset = 0;
    LATHE_UNROLL
    for (int axis = 0; axis < 3; ++axis) offset += at[axis] * Window::dilation(axis) * axis_stride(x, axis);
    return offset;
  }
};

// Whether a tap's pixel lies in the image.
template <class Window, class Tensor>
LATHE_DEVICE bool is_inside(const Tensor& x, const int (&corner)[3], const Tap<Window>& tap) {
  bool inside = true;
  LATHE_UNROLL
  for (int axis = 3 - (Tensor::kRank - 2); axis < 3; ++axis) {
    if (Window::stays_inside(axis)) continue;
    const int at = corner[axis] + tap.at[axis] * Window::dilation(axis);
    inside = inside && static_cast<unsigned>(at) < static_cast<unsigned>(axis_extent(x, axis));
  }
  return inside;
}

}  // namespace conv
