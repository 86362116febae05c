// SPDX-License-Identifier: Apache-2.0
#include "base/deflate.h"

#include <zlib.h>

namespace lathe {
namespace {

constexpr size_t kSizeBytes = 8;

}  // namespace

Result<std::vector<std::byte>> deflate_bytes(std::span<const std::byte> bytes) {
  uLongf size = compressBound(bytes.size());
  std::vector<std::byte> compressed(kSizeBytes + size);
  for (size_t i = 0; i < kSizeBytes; ++i) compressed[i] = static_cast<std::byte>(bytes.size() >> (8 * i));
  if (compress2(reinterpret_cast<Bytef*>(compressed.data() + kSizeBytes), &size,
                reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), Z_DEFAULT_COMPRESSION) != Z_OK)
    return fail(ErrorCode::out_of_memory, "{} bytes cannot be compressed", bytes.size());
  compressed.resize(kSizeBytes + size);
  return compressed;
}

Result<std::vector<std::byte>> inflate_bytes(std::span<const std::byte> compressed, size_t most) {
  uint64_t size = 0;
  if (compressed.size() < kSizeBytes)
    return fail(ErrorCode::plan_malformed, "{} bytes are no compressed content", compressed.size());
  for (size_t i = 0; i < kSizeBytes; ++i) size |= static_cast<uint64_t>(compressed[i]) << (8 * i);
  compressed = compressed.subspan(kSizeBytes);
  if (size > most)
    return fail(ErrorCode::plan_malformed, "compressed content claims {} bytes; at most {} are read", size, most);
  std::vector<std::byte> bytes(size);
  uLongf made = size;
  const int code = uncompress(reinterpret_cast<Bytef*>(bytes.data()), &made,
                              reinterpret_cast<const Bytef*>(compressed.data()), compressed.size());
  if (code == Z_MEM_ERROR) return fail(ErrorCode::out_of_memory, "compressed content of {} bytes", size);
  if (code != Z_OK || made != size)
    return fail(ErrorCode::plan_malformed, "compressed content is damaged: {} of {} bytes came", made, size);
  return bytes;
}

}  // namespace lathe
