// SPDX-License-Identifier: Apache-2.0
// Transposed convolution as matrix products: the outputs whose places are equal modulo the stride (a phase) read the
// same taps, so each phase is a convolution of stride 1 with some of the taps in reverse. Phases and groups are a
// batch.
#pragma once

#include "conv/gather_loader.cuh"
#include "conv/window_loader.cuh"

namespace deconv {

// Whole describes the op (kernel, stride, dilation, pads), Window the convolution of each phase.
template <class Whole, class Window>
struct Phase {
  int at[3];  // the first output of each axis

  LATHE_DEVICE_MEMBER explicit Phase(long index) {
    auto rest = static_cast<unsigned>(index);
    LATHE_UNROLL
    for (int axis = 2; axis >= 0; --axis) {
      at[axis] = static_cast<int>(rest % static_cast<unsigned>(Whole::stride(axis)));
      rest /= static_cast<unsigned>(Whole::stride(axis));
    }
  }

  // Output at + stride * q reads with its first tap the input pixel origin + q.
  LATHE_DEVICE_MEMBER int origin(int axis) const {
    for (int tap = 0; tap < Whole::stride(axis); ++tap) {
      const int distance = at[axis] + Whole::pad(axis) - tap * Whole::dilation(axis);
      if (distance % Whole::stride(axis) == 0)
        return distance / Whole::stride(axis) - (Window::kernel(axis) - 1) * Window::dilation(axis);
    }
    return 0;  // no tap reaches this phase: its weights are zeros
  }
  // `extent`: the outputs of a phase along the axes.
  LATHE_DEVICE_MEMBER conv::Pixels pixels(long d, long h, long w) const {
    conv::Pixels pixels{{d, h, w}, {}};
    LATHE_UNROLL
    for (int axis = 0; axis < 3; ++axis) pixels.origin[axis] = origin(axis) + Window::pad(axis);
    return pixels;
  }
};

// The rows of a phase's product in the output N C [[D] H] W. Phases of fewer outputs leave rows out.
template <class Whole>
struct PhaseRows {
  static constexpr bool kAll = false;
  long extent[3];
  int at[3];

  template <class Out, int N>
  LATHE_DEVICE_MEMBER bool coordinates(const Out& out, long row, long (&c)[N]) const {
    auto rest = static_cast<unsigned>(row);
    bool inside = true;
    LATHE_UNROLL
    for (int axis = 2; axis >= 5 - N; --axis) {
      const int d = axis + N - 3;
      const auto size = static_cast<unsigned>(extent[axis]);
      c[d] = at[axis] + static_cast<long>(rest % size) * Whole::stride(axis);
      inside = inside && c[d] < out.dim(d);
      rest /= size;
    }
    c[0] = rest;
    return inside;
  }
};

template <class Whole, class Window>
LATHE_DEVICE PhaseRows<Whole> rows_of(const Phase<Whole, Window>& phase, long d, long h, long w) {
  return {{d, h, w}, {phase.at[0], phase.at[1], phase.at[2]}};
}

}  // namespace deconv
