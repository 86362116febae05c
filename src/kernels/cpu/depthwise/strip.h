// SPDX-License-Identifier: Apache-2.0
// The inner kernels of depthwise convolution: a strip of neighbouring output pixels, a range of channels.
#pragma once

#include "kernels/cpu/depthwise/depthwise.h"
#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/gemm/integer_epilogue.h"

namespace lathe::cpu::depthwise {

struct Strip {
  const Shape* shape;
  std::array<int64_t, 3> in;         // x D H W
  std::array<int64_t, 3> in_stride;  // elements
  const float* x;                    // of this image; channel 0 of pixel 0
  const float* weights;
  int64_t weight_stride;          // from tap to tap
  std::array<int64_t, 3> corner;  // the first tap of the strip's first pixel, D H W; may lie outside of x
  int pixels;                     // at most kMaxPixels, or all of a row
  int64_t first_channel, last_channel;
  const BoundEpilogue* epilogue;
  // In place of `epilogue` where x and the weights hold 8-bit integers, and the pixel that is read outside of x then.
  const gemm::IntegerEpilogue* integers;
  const std::byte* outside;
  const int32_t* ordered;  // weights and what else differs by channel, of windows of 3 x 3; see order_channels()
  bool makes_levels;       // of the sums, which nothing else becomes of
  const TileRows* where;   // of the first kMaxPixels pixels
  int64_t out_step;        // bytes from a pixel's result to the next one's
};
using StripFunction = void (*)(const Strip& strip);

}  // namespace lathe::cpu::depthwise

namespace lathe::cpu {
LATHE_ISA_DECLARE(void depthwise_strip(const depthwise::Strip& strip))
}  // namespace lathe::cpu
