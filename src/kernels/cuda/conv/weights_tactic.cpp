// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv/weights_tactic.h"

#include <cstring>

namespace lathe::cuda::conv {

Result<Tensor> pack_weights(const Tensor& weights, int64_t padded) {
  const int64_t outputs = weights.dims()[0], channels = weights.dims()[1];
  const int64_t taps = outputs * channels == 0 ? 0 : weights.volume() / (outputs * channels);
  const size_t size = size_of(weights.dtype());
  const auto vector = static_cast<int64_t>(16 / size);
  const int64_t pitch = (taps * padded + vector - 1) / vector * vector;
  LATHE_ASSIGN(Tensor packed, Tensor::allocate(weights.dtype(), {outputs, pitch}));
  std::memset(packed.mutable_data(), 0, packed.bytes());
  const auto* from = static_cast<const std::byte*>(weights.data());
  for (int64_t o = 0; o < outputs; ++o) {
    std::byte* row = static_cast<std::byte*>(packed.mutable_data()) + static_cast<size_t>(o * pitch) * size;
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t tap = 0; tap < taps; ++tap, from += size)
        std::memcpy(row + static_cast<size_t>(tap * padded + c) * size, from, size);
  }
  return packed;
}

}  // namespace lathe::cuda::conv
