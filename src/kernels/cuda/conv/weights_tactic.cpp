// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv/weights_tactic.h"

#include <algorithm>

#include "base/divide.h"
#include "kernels/pack_tactic.h"

namespace lathe::cuda::conv {

Result<Packed> pack_weights(const Known& known, int64_t padded, size_t row_bytes) {
  const Tensor& weights = known.content;
  const int64_t outputs = weights.dims()[0], channels = weights.dims()[1];
  const int64_t taps = outputs * channels == 0 ? 0 : weights.volume() / (outputs * channels);
  const auto vector = static_cast<int64_t>(std::max<size_t>(row_bytes / size_of(weights.dtype()), 1));
  const int64_t pitch = round_up(taps * padded, vector);
  return pack(known, {outputs, pitch}, {{outputs, channels * taps, pitch}, {channels, taps, 1}, {taps, 1, padded}});
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
