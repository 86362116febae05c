// SPDX-License-Identifier: Apache-2.0
// The part of an image that a block's windows read, from memory in any order to shared memory, pixel by pixel. What
// lies outside of the image is 0.
#pragma once

#include "conv/window.cuh"
#include "lib/computed.cuh"

namespace conv_stem {

// What the convolution multiplies of a pixel's elements in memory.
template <class X, class T, int kChannels, int N>
LATHE_DEVICE void finish_pixel(const X&, const long (&)[N], const typename X::Type (&from)[kChannels],
                               T (&to)[kChannels]) {
  static_assert(is_same<T, typename X::Type>, "nothing converts them");
  LATHE_UNROLL
  for (int c = 0; c < kChannels; ++c) to[c] = from[c];
}
template <class X, class Program, class T, int kChannels, int N>
LATHE_DEVICE void finish_pixel(const Computed<X, Program>& x, const long (&at)[N],
                               const typename X::Type (&from)[kChannels], T (&to)[kChannels]) {
  constexpr int kWidth = kChannels <= 2 ? kChannels : 4;
  float v[kWidth] = {};
  LATHE_UNROLL
  for (int c = 0; c < kChannels; ++c) v[c] = to_float(from[c]);
  x.program.template apply<1, kWidth>(v, at, kChannels);
  LATHE_UNROLL
  for (int c = 0; c < kChannels; ++c) to[c] = from_float<T>(v[c]);
}

// Writes a pixel, whose last elements may be none of a channel.
template <int kPitch, class T, int kChannels>
LATHE_DEVICE void put_pixel(T* to, const T (&channels)[kChannels]) {
  Vec<T, kPitch == 3 ? 4 : kPitch> pixel = {};
  LATHE_UNROLL
  for (int c = 0; c < kChannels; ++c) pixel.at[c] = channels[c];
  if constexpr (kPitch == 3) {  // pixels of an odd number are not aligned
    LATHE_UNROLL
    for (int c = 0; c < kPitch; ++c) to[c] = pixel.at[c];
  } else {
    move_vector<kPitch>(to, pixel.at);
  }
}

// The tile whose first pixel is `corner`, on its way: what a thread copies waits in registers until it is placed.
template <class Words, int kChannels, int kThreads, class X>
class PixelLoader {
  using T = typename Words::Element;
  static constexpr int kPixels = Words::kRows * Words::kColumns, kOfThread = (kPixels + kThreads - 1) / kThreads;

 public:
  static constexpr int kRegisters = kOfThread * kChannels;  // at the most

  LATHE_DEVICE_MEMBER explicit PixelLoader(const X& x) : x_(x) {}

  LATHE_DEVICE_MEMBER void fetch(const conv::Corner& corner, bool wanted) {
    corner_ = corner;
    const auto* data = x_.data + corner.image * x_.stride(0);
    const int first = first_pixel();
    LATHE_UNROLL
    for (int i = 0; i < kOfThread; ++i) {
      const int pixel = first + i * kThreads;
      const int h = corner.at[1] + pixel / Words::kColumns, w = corner.at[2] + pixel % Words::kColumns;
      inside_[i] = wanted && exists(pixel) &&
                   static_cast<unsigned>(h) < static_cast<unsigned>(conv::axis_extent(x_, 1)) &&
                   static_cast<unsigned>(w) < static_cast<unsigned>(conv::axis_extent(x_, 2));
      const auto* from = data + h * conv::axis_stride(x_, 1) + w * conv::axis_stride(x_, 2);
      LATHE_UNROLL
      for (int c = 0; c < kChannels; ++c) elements_[i][c] = inside_[i] ? from[c * x_.stride(1)] : typename X::Type{};
    }
  }

  LATHE_DEVICE_MEMBER void place(T* image) const {
    const int first = first_pixel();
    LATHE_UNROLL
    for (int i = 0; i < kOfThread; ++i) {
      const int pixel = first + i * kThreads, row = pixel / Words::kColumns, column = pixel % Words::kColumns;
      if (!exists(pixel)) break;
      T channels[kChannels] = {};
      if (inside_[i]) {
        long at[X::kRank] = {corner_.image};
        if constexpr (X::kRank > 3) at[X::kRank - 2] = corner_.at[1] + row;
        at[X::kRank - 1] = corner_.at[2] + column;
        finish_pixel(x_, at, elements_[i], channels);
      }
      put_pixel<Words::kPitch>(image + row * Words::kRowWords * Words::kPerWord + column * Words::kPitch, channels);
    }
  }

 private:
  // The places of a thread's pixels are computed for each tile: they are more than registers have room for.
  LATHE_DEVICE_MEMBER static int first_pixel() { return static_cast<int>(hold(static_cast<unsigned>(thread_x()))); }
  LATHE_DEVICE_MEMBER static bool exists(int pixel) { return kPixels % kThreads == 0 || pixel < kPixels; }

  const X& x_;
  conv::Corner corner_;
  typename X::Type elements_[kOfThread][kChannels];
  bool inside_[kOfThread];
};

}  // namespace conv_stem
