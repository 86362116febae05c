// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/depthwise/depthwise.h"

#include <algorithm>

#include "base/divide.h"

namespace lathe::cpu::depthwise {
namespace {

int64_t padded_channels(const Shape& shape) { return round_up(shape.channels, 16); }

}  // namespace

int64_t packed_floats(const Shape& shape) { return shape.volume() * padded_channels(shape); }

void pack_weights(const Shape& shape, const float* weights, std::span<float> packed) {
  const int64_t stride = padded_channels(shape), volume = shape.volume();
  std::fill(packed.begin(), packed.end(), 0.0f);
  for (int64_t c = 0; c < shape.channels; ++c)
    for (int64_t t = 0; t < volume; ++t) packed[t * stride + c] = weights[c * volume + t];
}

std::vector<Config> candidates(const Shape& shape, int64_t out_width, int threads) {
  std::vector<Config> found;
  const bool deep = shape.channels > 16 * out_width;
  for (bool split : {deep, !deep})
    for (int pixels : {6, 4, 5, 3, 2}) {
      const Config config{pixels, split && threads > 1};
      if (std::find(found.begin(), found.end(), config) == found.end()) found.push_back(config);
    }
  return found;
}

}  // namespace lathe::cpu::depthwise
