// SPDX-License-Identifier: Apache-2.0
#include "compose/letter_case.h"

#include "base/utf8.h"

namespace lathe {
namespace {

struct Letters {
  int first, last, step, distance;
};
constexpr Letters kLetters[] = {
    {'A', 'Z', 1, 'a' - 'A'},
#define LATHE_LETTERS(first, last, step, distance) {first, last, step, distance},
#include "compose/letter_case.def"
#undef LATHE_LETTERS
};

unsigned in_case(unsigned code, bool to_lower) {
  for (const Letters& letters : kLetters) {
    const int from = letters.first + (to_lower ? 0 : letters.distance);
    const int place = static_cast<int>(code) - from;
    if (place >= 0 && place <= letters.last - letters.first && place % letters.step == 0)
      return static_cast<unsigned>(static_cast<int>(code) + (to_lower ? letters.distance : -letters.distance));
  }
  return code;
}

constexpr unsigned kFirst = 0xc2, kLast = 0xdf;                     // of characters of two bytes
constexpr unsigned kSecond = 0xb8, kLastSecond = 0xbb;              // behind kFirstOfThree: U+1E00 to U+1EFF
constexpr size_t kRowsOfFirsts = kLast - kFirst + 1, kBytes = 256;  // row 0 is of none
constexpr size_t kRows = 1 + kRowsOfFirsts + kLastSecond - kSecond + 1;

uint8_t byte_of(const std::string& text, size_t i) { return static_cast<uint8_t>(text[i]); }

}  // namespace

std::string in_case(std::string_view text, bool to_lower) {
  std::string changed;
  while (!text.empty()) {
    const size_t count = utf8_bytes(text);
    changed += to_utf8(in_case(code_of(text.substr(0, count)), to_lower));
    text.remove_prefix(count);
  }
  return changed;
}

CaseTables case_tables(bool to_lower) {
  CaseTables tables{std::vector<int64_t>(kBytes), std::vector<int64_t>(kBytes), {}, {}};
  for (size_t row = 0; row < kRows; ++row)
    for (size_t byte = 0; byte < kBytes; ++byte) {
      tables.bytes.push_back(static_cast<uint8_t>(byte));
      tables.firsts.push_back(static_cast<uint8_t>(row > 0 && row <= kRowsOfFirsts ? kFirst + row - 1 : byte));
    }
  for (unsigned byte = 0; byte < 0x80; ++byte) tables.bytes[byte] = static_cast<uint8_t>(in_case(byte, to_lower));
  size_t row = 1;
  for (unsigned first = kFirst; first <= kLast; ++first, ++row) {
    tables.row_of_first[first] = static_cast<int64_t>(row);
    for (unsigned behind = 0x80; behind < 0xc0; ++behind) {
      const std::string changed = to_utf8(in_case((first & 0x1f) << 6 | (behind & 0x3f), to_lower));
      tables.firsts[row * kBytes + behind] = byte_of(changed, 0);
      tables.bytes[row * kBytes + behind] = byte_of(changed, 1);
    }
  }
  for (unsigned second = kSecond; second <= kLastSecond; ++second, ++row) {
    tables.row_of_second[second] = static_cast<int64_t>(row);
    for (unsigned behind = 0x80; behind < 0xc0; ++behind)
      tables.bytes[row * kBytes + behind] =
          byte_of(to_utf8(in_case(0x1000 | (second & 0x3f) << 6 | (behind & 0x3f), to_lower)), 2);
  }
  return tables;
}

}  // namespace lathe
