// SPDX-License-Identifier: Apache-2.0
#include "plan/foreign_prefix.h"

#include <cstdint>

namespace lathe::plan {
namespace {

constexpr size_t kMaxPrefix = size_t{16} << 20;

}  // namespace

size_t foreign_prefix_bytes(std::span<const std::byte> bytes) { return ForeignPrefix().find(bytes).value_or(0); }

// The JSON object stands alone, or behind its length.
std::optional<size_t> ForeignPrefix::find(std::span<const std::byte> bytes) {
  if (bytes.size() < 5) return std::nullopt;
  if (bytes[0] == std::byte{'{'}) return find_object(bytes, 0);
  uint32_t length = 0;
  for (size_t i = 0; i < 4; ++i) length |= static_cast<uint32_t>(bytes[i]) << (8 * i);
  if (bytes[4] != std::byte{'{'} || length > kMaxPrefix) return 0;
  if (bytes.size() < 4 + size_t{length}) return std::nullopt;
  const size_t end = 4 + size_t{length};
  return find_object(bytes.first(end), 4) == end ? end : 0;
}

// Where the object that begins at `start` ends, by its braces alone; 0 when it does not.
std::optional<size_t> ForeignPrefix::find_object(std::span<const std::byte> bytes, size_t start) {
  for (size_t i = start + read_; i < bytes.size() && read_ < kMaxPrefix; i = start + read_) {
    const char c = static_cast<char>(bytes[i]);
    if (in_string_ && c == '\\' && i + 1 == bytes.size()) break;  // what it escapes is not here yet
    read_ += in_string_ && c == '\\' ? 2 : 1;
    if (c == '"') in_string_ = !in_string_;
    if (in_string_) continue;
    if (c == '{') ++depth_;
    if (c == '}' && --depth_ == 0) return start + read_;
  }
  return read_ < kMaxPrefix ? std::nullopt : std::optional<size_t>(0);
}

}  // namespace lathe::plan
