// SPDX-License-Identifier: Apache-2.0
#include "base/deflate.h"

#include <zlib.h>

namespace lathe {

Result<std::vector<std::byte>> deflate_bytes(std::span<const std::byte> bytes) {
  uLongf size = compressBound(bytes.size());
  std::vector<std::byte> compressed(kDeflatedSizeBytes + size);
  for (size_t i = 0; i < kDeflatedSizeBytes; ++i) compressed[i] = static_cast<std::byte>(bytes.size() >> (8 * i));
  if (compress2(reinterpret_cast<Bytef*>(compressed.data() + kDeflatedSizeBytes), &size,
                reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), Z_DEFAULT_COMPRESSION) != Z_OK)
    return fail(ErrorCode::out_of_memory, "{} bytes cannot be compressed", bytes.size());
  compressed.resize(kDeflatedSizeBytes + size);
  return compressed;
}

}  // namespace lathe
