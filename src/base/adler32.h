// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace lathe {

// The checksum Adler-32 (RFC 1950) of bytes that come in parts.
class Adler32 {
 public:
  void add(std::span<const uint8_t> bytes);
  uint32_t value() const { return sum_of_sums_ << 16 | sum_; }

 private:
  uint32_t sum_ = 1, sum_of_sums_ = 0;
};

}  // namespace lathe
