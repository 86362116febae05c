// SPDX-License-Identifier: Apache-2.0
// Which function sums the windows of a strip: one for each usual kernel, stride and number of pixels, and one for any.
// For *_simd.cpp files, like simd.h.
#pragma once

#include <utility>

#include "kernels/cpu/depthwise/strip.h"
#include "kernels/cpu/simd.h"

namespace lathe::cpu::LATHE_ISA {

// What a window checks before it reads: whether its pixels lie inside of x, and whether every lane's channel exists.
enum class Checked { nothing, pixels, pixels_and_channels };

// Sums of one vector of channels, of which `lanes` exist, for every pixel of a strip.
template <class Sum>
using SumFunction = void (*)(const depthwise::Strip& strip, int64_t c, int lanes, Sum* sums);
template <class Sum>
struct SumFunctions {
  SumFunction<Sum> whole, tail;  // of vectors of which every channel exists, and of others
};

// Sums has the type Sum, a vector, and the functions window<kernel, stride, pixels, checked> and any<tail>.
template <class Sums, int kKernel, int kStride, Checked kChecked, int... kPixel>
SumFunction<typename Sums::Sum> window_of(int pixels, std::integer_sequence<int, kPixel...>) {
  static constexpr SumFunction<typename Sums::Sum> functions[] = {
      Sums::template window<kKernel, kStride, kPixel + 1, kChecked>...};
  return functions[pixels - 1];
}
template <class Sums, int kKernel, int kStride>
SumFunctions<typename Sums::Sum> window_of(const depthwise::Strip& strip) {
  const int64_t last = strip.corner[2] + (strip.pixels - 1) * kStride + kKernel;
  const bool edge = strip.corner[2] < 0 || last > strip.in[2];
  constexpr std::make_integer_sequence<int, depthwise::kMaxPixels> sequence;
  return {edge ? window_of<Sums, kKernel, kStride, Checked::pixels>(strip.pixels, sequence)
               : window_of<Sums, kKernel, kStride, Checked::nothing>(strip.pixels, sequence),
          window_of<Sums, kKernel, kStride, Checked::pixels_and_channels>(strip.pixels, sequence)};
}
// kKernel: those that have functions of their own.
template <class Sums, int... kKernel>
SumFunctions<typename Sums::Sum> functions_of(const depthwise::Strip& strip) {
  const depthwise::Shape& shape = *strip.shape;
  const int64_t kernel = shape.kernel[2], stride = shape.stride[2];
  const bool square = shape.kernel[0] == 1 && shape.kernel[1] == kernel && shape.dilation[1] == 1 &&
                      shape.dilation[2] == 1 && strip.corner[0] >= 0 && strip.corner[0] < strip.in[0];
  SumFunctions<typename Sums::Sum> found{Sums::template any<false>, Sums::template any<true>};
  const auto find = [&]<int kSize>(std::integral_constant<int, kSize>) {
    if (square && kernel == kSize && stride == 1) found = window_of<Sums, kSize, 1>(strip);
    if (square && kernel == kSize && stride == 2) found = window_of<Sums, kSize, 2>(strip);
  };
  (find(std::integral_constant<int, kKernel>()), ...);
  return found;
}

}  // namespace lathe::cpu::LATHE_ISA
