// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/tiles.h"

#include <algorithm>

#include "base/divide.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda {

int64_t Tiles::pitch(DType dtype) const {
  return size + std::max<int64_t>(1, 4 / static_cast<int64_t>(size_of(dtype)));
}

uint32_t Tiles::bytes(DType dtype) const {
  const int64_t bytes = size * pitch(dtype) * static_cast<int64_t>(size_of(dtype));
  return static_cast<uint32_t>(round_up(bytes, 16));
}

bool crosses(const Operand& tensor, const Operand& output) {
  const int last = output.rank() - 1, unit = unit_dim(tensor);
  return unit >= 0 && unit != last && tensor.strides[static_cast<size_t>(last)] != Expr(0);
}

std::optional<Tiles> tiles_for(const Operand& output, std::span<const Operand> crossing) {
  constexpr int64_t kMinRun = 8;
  const int last = output.rank() - 1;
  if (crossing.empty() || unit_dim(output) != last || !crosses(crossing[0], output)) return std::nullopt;
  Tiles tiles;
  tiles.fast = unit_dim(crossing[0]);
  tiles.size = 64;
  for (const Operand& tensor : crossing)
    if (size_of(tensor.dtype) > 2) tiles.size = 32;
  const auto fast = static_cast<size_t>(tiles.fast), end = static_cast<size_t>(last);
  if (output.opt_dims[fast] < kMinRun || output.opt_dims[end] < kMinRun) return std::nullopt;
  tiles.blocks = ceildiv(output.dims[end], tiles.size) * ceildiv(output.dims[fast], tiles.size);
  for (size_t d = 0; d < end; ++d)
    if (d != fast) tiles.blocks *= output.dims[d];
  return tiles;
}

}  // namespace lathe::cuda
