// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

namespace lathe {

size_t utf8_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t count = first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (first < 0xc2 || count == 0) return 0;
  for (size_t i = 1; i < count; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Longer than needed, half of a pair, or past the last character.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) >= 0xa0) || (first == 0xf0 && byte(1) < 0x90) ||
      (first == 0xf4 && byte(1) >= 0x90))
    return 0;
  return count;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t count = utf8_bytes(text);
    if (count == 0) return false;
    text.remove_prefix(count);
  }
  return true;
}

unsigned code_of(std::string_view character) {
  const size_t count = character.size();
  unsigned code = static_cast<unsigned char>(character[0]) & (count == 1 ? 0x7f : 0x7f >> count);
  for (size_t i = 1; i < count; ++i) code = code << 6 | (static_cast<unsigned char>(character[i]) & 0x3f);
  return code;
}

std::string to_utf8(unsigned code) {
  if (code < 0x80) return {static_cast<char>(code)};
  std::string bytes;
  unsigned rest = code, most = 0x3f;  // what fits into the first byte
  for (; rest > most; rest >>= 6, most >>= 1) bytes.insert(bytes.begin(), static_cast<char>(0x80 | (rest & 0x3f)));
  return static_cast<char>(~(2 * most + 1) | rest) + bytes;
}

}  // namespace lathe
