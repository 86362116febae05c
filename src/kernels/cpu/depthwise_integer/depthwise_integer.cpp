// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/depthwise_integer/depthwise_integer.h"

#include <algorithm>

#include "base/divide.h"

namespace lathe::cpu::depthwise {

int64_t packed_fours(const Shape& shape) {
  return shape.kernel[0] * ceil_div<int64_t>(shape.kernel[1], 4) * shape.kernel[2] * padded_channels(shape);
}

int64_t packed_integers(const Shape& shape) { return packed_fours(shape) + padded_channels(shape); }

void pack_weights(const Shape& shape, const int8_t* weights, std::span<int32_t> packed) {
  const auto& [depth, height, width] = shape.kernel;
  const int64_t channels = padded_channels(shape), groups = ceil_div<int64_t>(height, 4);
  std::fill(packed.begin(), packed.end(), 0);
  int32_t* sums = packed.data() + packed_fours(shape);
  for (int64_t c = 0; c < shape.channels; ++c)
    for (int64_t t = 0; t < shape.volume(); ++t, ++weights) {
      const int64_t d = t / (height * width), h = t / width % height, w = t % width;
      int32_t& four = packed[static_cast<size_t>(((d * groups + h / 4) * width + w) * channels + c)];
      four = static_cast<int32_t>(static_cast<uint32_t>(four) | static_cast<uint32_t>(static_cast<uint8_t>(*weights))
                                                                    << (8 * (h % 4)));
      sums[c] += 128 * *weights;
    }
}

bool has_order(const Shape& shape) {
  const std::array<int64_t, 3> kernel{1, 3, 3};
  return shape.kernel == kernel && shape.dilation[1] == 1 && shape.dilation[2] == 1 && shape.stride[2] <= 2 &&
         shape.spatial == 2;
}

// Six rows: three of weights, zeros, scales, offsets.
int64_t ordered_integers(const Shape& shape) {
  return has_order(shape) ? 6 * round_up<int64_t>(shape.channels, kMaxTileColumns) : 0;
}

}  // namespace lathe::cpu::depthwise
