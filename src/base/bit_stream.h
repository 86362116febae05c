// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/prefix_code.h"

namespace lathe::deflate {

static_assert(std::endian::native == std::endian::little);

// The stream's next bits. Behind its end come zeros, which is_over() tells.
class BitStream {
 public:
  BitStream(const uint8_t* begin, const uint8_t* end) : next_(begin), end_(end) {}

  // At least 56 bits are there afterwards. `refill_within` is for three times where the end is far (has_plenty()).
  void refill_within() {
    uint64_t bytes;
    std::memcpy(&bytes, next_, sizeof bytes);
    bits_ |= bytes << count_;
    next_ += (63 - count_) / 8;
    count_ |= 56;
  }
  void refill() {
    if (has_plenty()) return refill_within();
    for (; count_ < 56; count_ += 8)
      if (next_ < end_)
        bits_ |= uint64_t{*next_++} << count_;
      else
        ++beyond_;
  }
  bool has_plenty() const { return end_ - next_ >= 24; }
  bool is_over() const { return beyond_ * 8 > count_; }

  uint64_t bits() const { return bits_; }
  unsigned count() const { return count_; }
  void drop(unsigned count) {
    bits_ >>= count;
    count_ -= count;
  }
  uint32_t take(unsigned count) {
    const auto taken = static_cast<uint32_t>(bits_ & ((uint64_t{1} << count) - 1));
    drop(count);
    return taken;
  }
  // The value of a code word with the bits that follow it.
  uint32_t take_value(Meaning meaning) {
    const uint64_t bits = bits_ & ((uint64_t{1} << taken(meaning)) - 1);
    drop(taken(meaning));
    return value_of(meaning) + static_cast<uint32_t>(bits >> (taken(meaning) - following(meaning)));
  }

  // The bytes from the next whole one on; none where the stream is over.
  std::span<const uint8_t> rest() const {
    const unsigned whole = count_ / 8;
    if (is_over()) return {};
    return {next_ - (whole - beyond_), end_};
  }
  void go_on_at(const uint8_t* next) { *this = BitStream(next, end_); }

 private:
  const uint8_t *next_, *end_;
  uint64_t bits_ = 0;
  unsigned count_ = 0, beyond_ = 0;  // bits; bytes among them that are not the stream's
};

}  // namespace lathe::deflate
