// SPDX-License-Identifier: Apache-2.0
#include "plan/foreign_prefix.h"

#include <algorithm>
#include <cstdint>

namespace lathe::plan {
namespace {

constexpr size_t kMaxPrefix = size_t{16} << 20;

// Length of the JSON object at the start, by its braces alone; 0 when it does not end.
size_t object_bytes(std::span<const std::byte> bytes) {
  size_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < std::min(bytes.size(), kMaxPrefix); ++i) {
    const char c = static_cast<char>(bytes[i]);
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return 0;
}

}  // namespace

size_t foreign_prefix_bytes(std::span<const std::byte> bytes) {
  if (bytes.size() < 5) return 0;
  if (bytes[0] == std::byte{'{'}) return object_bytes(bytes);
  uint32_t length = 0;
  for (size_t i = 0; i < 4; ++i) length |= static_cast<uint32_t>(bytes[i]) << (8 * i);
  const std::span<const std::byte> rest = bytes.subspan(4);
  if (rest[0] != std::byte{'{'} || length > rest.size() || length > kMaxPrefix) return 0;
  return object_bytes(rest) == length ? 4 + size_t{length} : 0;
}

}  // namespace lathe::plan
