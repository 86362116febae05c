// SPDX-License-Identifier: Apache-2.0
#include "tuning/device_content.h"

#include <algorithm>

#include "tuning/random_content.h"

namespace lathe {
namespace {

constexpr size_t kPiece = size_t{256} << 10;  // that the host makes
constexpr size_t kLarge = size_t{4} << 20;

}  // namespace

Result<> fill_device(const DeviceMemory& memory, DType dtype, uint32_t seed, Device& device, Queue& queue) {
  LATHE_ASSIGN(Tensor piece,
               Tensor::allocate(dtype, {static_cast<int64_t>(std::min(memory.size(), kPiece) / size_of(dtype))}));
  fill_randomly(piece, seed);
  std::byte* const to = memory.data();
  LATHE_TRY(device.upload(to, piece.data(), std::min(piece.bytes(), memory.size()), queue));
  for (size_t done = piece.bytes(); done > 0 && done < memory.size(); done *= 2)
    LATHE_TRY(device.copy({.to = to + done, .from = to, .width = std::min(done, memory.size() - done)}, queue));
  return {};
}

bool takes_any_floats(DType dtype, size_t bytes, const Device& device) {
  return !device.is_host() && is_floating(dtype) && bytes >= kLarge;
}

}  // namespace lathe
