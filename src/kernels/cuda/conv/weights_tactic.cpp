// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv/weights_tactic.h"

#include <algorithm>
#include <cstring>

#include "base/divide.h"

namespace lathe::cuda::conv {

Result<Tensor> pack_weights(const Tensor& weights, int64_t padded, size_t row_bytes) {
  const int64_t outputs = weights.dims()[0], channels = weights.dims()[1];
  const int64_t taps = outputs * channels == 0 ? 0 : weights.volume() / (outputs * channels);
  const size_t size = size_of(weights.dtype());
  const auto vector = static_cast<int64_t>(std::max<size_t>(row_bytes / size, 1));
  const int64_t pitch = round_up(taps * padded, vector);
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

std::string weights_loader(Source& source, const Operand& packed, int64_t outputs, int64_t k,
                           const gemm::TileShape& tile) {
  const Expr& pitch = packed.dims[1];
  const int width = static_cast<int>(16 / size_of(packed.dtype));
  return gemm::dense_loader(
      source,
      {"b", "B", fmt::format(" + batch * n * {}", *pitch.as_constant()), pitch, width, gemm::Major::k, outputs, k},
      tile);
}

}  // namespace lathe::cuda::conv
