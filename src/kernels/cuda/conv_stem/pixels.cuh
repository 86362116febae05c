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

// Copies the tile whose first pixel is `corner`. A thread's pixels are on the way at the same time, eight at the most.
template <class Words, int kChannels, int kThreads, class X>
LATHE_DEVICE void load_pixels(const X& x, const conv::Corner& corner, typename Words::Element* image) {
  using T = typename Words::Element;
  constexpr int kPixels = Words::kRows * Words::kColumns, kOfThread = (kPixels + kThreads - 1) / kThreads;
  constexpr int kTurns = (kOfThread + 7) / 8, kAtOnce = (kOfThread + kTurns - 1) / kTurns, kFirst = X::kRank - 2;
  const auto* data = x.data + corner.image * x.stride(0);
  LATHE_NO_UNROLL
  for (int first = thread_x(); first < kPixels; first += kThreads * kAtOnce) {
    typename X::Type elements[kAtOnce][kChannels];
    bool inside[kAtOnce];
    LATHE_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      const int pixel = first + i * kThreads;
      const int h = corner.at[1] + pixel / Words::kColumns, w = corner.at[2] + pixel % Words::kColumns;
      inside[i] = pixel < kPixels && static_cast<unsigned>(h) < static_cast<unsigned>(conv::axis_extent(x, 1)) &&
                  static_cast<unsigned>(w) < static_cast<unsigned>(conv::axis_extent(x, 2));
      const auto* from = data + h * conv::axis_stride(x, 1) + w * conv::axis_stride(x, 2);
      LATHE_UNROLL
      for (int c = 0; c < kChannels; ++c) elements[i][c] = inside[i] ? from[c * x.stride(1)] : typename X::Type{};
    }
    LATHE_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      const int pixel = first + i * kThreads, row = pixel / Words::kColumns, column = pixel % Words::kColumns;
      if (pixel >= kPixels) break;
      T channels[kChannels] = {};
      if (inside[i]) {
        long at[X::kRank] = {corner.image};
        if constexpr (kFirst > 1) at[kFirst] = corner.at[1] + row;
        at[X::kRank - 1] = corner.at[2] + column;
        finish_pixel(x, at, elements[i], channels);
      }
      put_pixel<Words::kPitch>(image + row * Words::kRowWords * Words::kPerWord + column * Words::kPitch, channels);
    }
  }
}

}  // namespace conv_stem
