// SPDX-License-Identifier: Apache-2.0
// Sliding windows: what convolution, deconvolution and pooling share.
#pragma once

#include "ops/rules.h"

namespace lathe {

// An entry of a list of attributes (strides, dilations, pads) that may end before it.
inline int64_t value_at(const Ints& values, size_t i, int64_t fallback) {
  return i < values.size() ? values[i] : fallback;
}

// The window attributes of an op, one value per spatial axis.
struct WindowAttrs {
  Ints stride, pads_begin, pads_end, dilation;
  PaddingMode mode = PaddingMode::explicit_round_down;
};

// Fills what is absent (stride and dilation 1, pads 0) and checks lengths and signs.
template <class Attrs>
Result<WindowAttrs> window_attrs(const Attrs& attrs, size_t spatial_rank);
Result<> complete(WindowAttrs& attrs, size_t spatial_rank);

// How many places a window has on each spatial axis; below 1 where it does not fit.
Shape window_positions(std::span<const Expr> input, std::span<const Expr> kernel, const WindowAttrs& attrs);
// The same as a shape rule: that the window fits is assumed of the context.
Result<Shape> window_outputs(InferContext& context, std::span<const Expr> input, std::span<const Expr> kernel,
                             const WindowAttrs& attrs);

// One axis while running: tap t of output o reads input o * stride + t * dilation - pad.
struct WindowAxis {
  int64_t input, output, kernel, stride, dilation, pad;

  // The outputs whose tap t falls on an input: [first, last).
  int64_t first(int64_t tap) const {
    const int64_t start = tap * dilation - pad;
    return start >= 0 ? 0 : (-start + stride - 1) / stride;
  }
  int64_t last(int64_t tap) const {
    const int64_t room = input - 1 - (tap * dilation - pad);
    return room < 0 ? 0 : std::min(output, room / stride + 1);
  }
};

std::vector<WindowAxis> window_axes(std::span<const int64_t> input, std::span<const int64_t> output,
                                    std::span<const int64_t> kernel, const WindowAttrs& attrs);

// For one tap (an index per axis): calls f(input offset, output offset, count, input step) for every run along the last
// axis of pairs that the tap connects. Output offsets advance by 1.
template <class F>
void for_each_run(std::span<const WindowAxis> axes, std::span<const int64_t> tap, F&& f, size_t axis = 0,
                  int64_t input = 0, int64_t output = 0) {
  const WindowAxis& a = axes[axis];
  const int64_t first = a.first(tap[axis]), last = a.last(tap[axis]);
  const int64_t start = tap[axis] * a.dilation - a.pad;
  if (axis + 1 == axes.size()) {
    if (first < last) f(input * a.input + first * a.stride + start, output * a.output + first, last - first, a.stride);
    return;
  }
  for (int64_t o = first; o < last; ++o)
    for_each_run(axes, tap, f, axis + 1, input * a.input + o * a.stride + start, output * a.output + o);
}

// Calls f(tap, flat index of the tap) for all taps in row-major order.
template <class F>
void for_each_tap(std::span<const WindowAxis> axes, F&& f) {
  Dims tap(axes.size(), 0);
  int64_t count = 1;
  for (const WindowAxis& axis : axes) count *= axis.kernel;
  for (int64_t flat = 0; flat < count; ++flat) {
    f(std::span<const int64_t>(tap), flat);
    for (size_t d = tap.size(); d-- > 0 && ++tap[d] == axes[d].kernel;) tap[d] = 0;
  }
}

template <class Attrs>
Result<WindowAttrs> window_attrs(const Attrs& attrs, size_t spatial_rank) {
  WindowAttrs out{attrs.stride, attrs.pads_begin, attrs.pads_end, attrs.dilation, attrs.padding_mode};
  LATHE_TRY(complete(out, spatial_rank));
  return out;
}

}  // namespace lathe
