// SPDX-License-Identifier: Apache-2.0
#include "tuning/paged_content.h"

#include <cstring>

namespace lathe {

Result<Tensor> in_order(const Tensor& pool, const Tensor& table, const Dims& dims) {
  LATHE_ASSIGN(Tensor result, Tensor::allocate(pool.dtype(), dims));
  const int64_t blocks = pool.dims()[0], size = pool.dims()[2], run = dims[3];
  const size_t bytes = static_cast<size_t>(run) * size_of(pool.dtype());
  auto* to = static_cast<std::byte*>(result.mutable_data());
  for (int64_t row = 0; row < dims[0] * dims[1] * dims[2]; ++row, to += bytes) {
    const int64_t key = row % dims[2], head = row / dims[2] % dims[1], sequence = row / dims[2] / dims[1];
    const auto number = static_cast<int64_t>(table.at_double(sequence * table.dims()[1] + key / size));
    const int64_t block = number < 0 ? number + blocks : number;
    if (block < 0 || block >= blocks) {
      std::memset(to, 0, bytes);
      continue;
    }
    const int64_t at = (block * dims[1] + head) * size + key % size;
    std::memcpy(to, static_cast<const std::byte*>(pool.data()) + static_cast<size_t>(at) * bytes, bytes);
  }
  return result;
}

}  // namespace lathe
