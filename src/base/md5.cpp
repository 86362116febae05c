// SPDX-License-Identifier: Apache-2.0
#include "base/md5.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace lathe {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t kBlock = 64;
using Words = std::array<uint32_t, 4>;

// The table of RFC 1321: the first 32 bits behind the point of |sin(i + 1)|.
const std::array<uint32_t, 64>& sines() {
  static const std::array<uint32_t, 64> table = [] {
    std::array<uint32_t, 64> values{};
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<uint32_t>(std::floor(std::fabs(std::sin(static_cast<double>(i + 1))) * 0x1p32));
    return values;
  }();
  return table;
}

void add_block(Words& state, const std::byte* block) {
  constexpr int kShifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  uint32_t words[16];
  std::memcpy(words, block, kBlock);
  auto [a, b, c, d] = state;
  for (uint32_t i = 0; i < 64; ++i) {
    uint32_t mixed = 0, word = 0;
    switch (i / 16) {
      case 0:
        mixed = (b & c) | (~b & d), word = i;
        break;
      case 1:
        mixed = (d & b) | (~d & c), word = 5 * i + 1;
        break;
      case 2:
        mixed = b ^ c ^ d, word = 3 * i + 5;
        break;
      default:
        mixed = c ^ (b | ~d), word = 7 * i;
    }
    const uint32_t turned = std::rotl(a + mixed + sines()[i] + words[word % 16], kShifts[i / 16][i % 4]);
    a = d;
    d = c;
    c = b;
    b += turned;
  }
  state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d};
}

}  // namespace

std::array<std::byte, 16> md5_of(std::span<const std::byte> bytes) {
  Words state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  const size_t whole = bytes.size() / kBlock * kBlock;
  for (size_t at = 0; at < whole; at += kBlock) add_block(state, bytes.data() + at);
  std::vector<std::byte> rest(bytes.begin() + static_cast<std::ptrdiff_t>(whole), bytes.end());
  rest.push_back(std::byte{0x80});
  while (rest.size() % kBlock != kBlock - sizeof(uint64_t)) rest.push_back(std::byte{0});
  const uint64_t bits = uint64_t{bytes.size()} * 8;
  const auto tail = std::as_bytes(std::span(&bits, 1));
  rest.insert(rest.end(), tail.begin(), tail.end());
  for (size_t at = 0; at < rest.size(); at += kBlock) add_block(state, rest.data() + at);
  return std::bit_cast<std::array<std::byte, 16>>(state);
}

}  // namespace lathe
