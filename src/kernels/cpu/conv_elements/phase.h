// SPDX-License-Identifier: Apache-2.0
// Which pixels and weights an output of a convolution sees.
#pragma once

#include "device/tensor_arg.h"
#include "kernels/cpu/conv_elements/conv_elements.h"

namespace lathe::cpu::conv_elements {

inline constexpr int kMaxSpatial = kMaxRank - 2;

// A pixel of the output, and where the pixel of x lies that a tap at position 0 sees.
struct Pixel {
  int64_t image;
  int64_t outputs[kMaxSpatial], positions[kMaxSpatial];

  // Of its element of a channel in a tensor with the strides that `stride_of` gives.
  template <class F>
  int64_t offset(int spatial, int64_t channel, F&& stride_of) const {
    int64_t sum = image * stride_of(0) + channel * stride_of(1);
    for (int d = 0; d < spatial; ++d) sum += outputs[d] * stride_of(d + 2);
    return sum;
  }
};

// Along one axis: outputs first, first + step, ... , `count` of them. Number j of them sees, by its tap t, the pixel
// j * advance + positions[t] of x, which may lie outside, weighted by element kernel[t].
struct PhaseAxis {
  int64_t first = 0, step = 1, count = 0, advance = 1, taps = 0;
  int64_t *positions = nullptr, *kernel = nullptr;
};

// The outputs that see the same taps.
class Phase {
 public:
  // Number `index` of a convolution of these tensors. `memory` has room for bytes().
  Phase(const ConvElementsParams& params, const TensorArg& x, const TensorArg& weights, const TensorArg& y,
        int64_t index, std::byte* memory);
  static int64_t bytes(const TensorArg& weights);
  static int64_t count(const ConvElementsParams& params);

  int64_t taps() const { return taps_; }
  int64_t pixels() const { return pixels_; }
  int spatial() const { return spatial_; }
  // Offset of a tap's weights, in elements.
  int64_t weights_at(int64_t tap) const { return elements_[tap]; }
  void locate(int64_t first, int64_t count, Pixel* pixels) const;

  // The element of x that a pixel sees through a tap; null where that lies outside.
  const std::byte* input_at(const Pixel& pixel, int64_t tap, int64_t channel) const {
    const int64_t* positions = positions_ + tap * spatial_;
    int64_t offset = pixel.image * x_.strides[0] + channel * x_.strides[1];
    for (int d = 0; d < spatial_; ++d) {
      const int64_t at = pixel.positions[d] + positions[d];
      if (at < 0 || at >= x_.dims[d + 2]) return nullptr;
      offset += at * x_.strides[d + 2];
    }
    return x_.as<std::byte>() + offset * static_cast<int64_t>(size_of(x_.dtype));
  }

 private:
  const TensorArg& x_;
  int spatial_;
  PhaseAxis axes_[kMaxSpatial];
  int64_t taps_ = 1, pixels_ = 0;
  const int64_t* positions_ = nullptr;  // of each tap along each axis
  const int64_t* elements_ = nullptr;
};

}  // namespace lathe::cpu::conv_elements
