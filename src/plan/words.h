// SPDX-License-Identifier: Apache-2.0
// Sections that are lists of numbers: words of 8 bytes, little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lathe::plan {

class WordReader {
 public:
  explicit WordReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  size_t left() const { return bytes_.size() / sizeof(uint64_t); }
  bool is_done() const { return bytes_.empty(); }
  uint64_t next() {  // there is one
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof value; ++i) value |= std::to_integer<uint64_t>(bytes_[i]) << (8 * i);
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
};

inline void put_word(std::vector<std::byte>& bytes, uint64_t value) {
  for (size_t i = 0; i < sizeof value; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
}

}  // namespace lathe::plan
