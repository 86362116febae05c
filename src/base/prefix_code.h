// SPDX-License-Identifier: Apache-2.0
// Prefix codes of Deflate (RFC 1951, section 3.2): code words of up to 15 bits, which are told by their lengths alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lathe::deflate {

inline constexpr unsigned kMostBits = 15;
inline constexpr size_t kMostSymbols = 288;

// What a code word stands for, in 32 bits: bits 0 to 7 are how many bits of the stream it takes, those that follow the
// code word included; bits 8 to 11, how many follow it; then 16 bits of value, to which those that follow are added;
// and what it is.
using Meaning = uint32_t;
inline constexpr Meaning kLiteral = 1u << 31, kEnd = 1u << 30, kFurther = 1u << 29, kNone = 1u << 28;
constexpr Meaning meaning(Meaning kind, uint32_t value, uint32_t following) {
  return kind | value << 12 | following << 8;
}
constexpr unsigned taken(Meaning meaning) { return meaning & 0xff; }
constexpr unsigned following(Meaning meaning) { return meaning >> 8 & 0xf; }
constexpr uint32_t value_of(Meaning meaning) { return meaning >> 12 & 0xffff; }

// A table that the next kIndex bits of the stream look up. Where code words are longer, it says by kFurther where the
// table of those begins that have these bits in common, and by how many bits it is looked up. kEntries are enough for
// all tables of any code (zlib's program `enough` counts them).
template <unsigned kIndex, size_t kEntries>
class PrefixCode {
 public:
  // From the bits of each symbol's code word, 0 where it has none. False where there is no such code: two words would
  // be one, or bits are no word; but a single word may have one bit, as in zlib.
  bool make(std::span<const uint8_t> lengths, std::span<const Meaning> meanings);

  // `bits` are the stream's next.
  Meaning first(uint64_t bits) const { return entries_[bits & (kFirst - 1)]; }
  // The same where that was kFurther; `bits` are those behind the first kIndex.
  Meaning second(Meaning found, uint64_t bits) const {
    return entries_[value_of(found) + (bits & ((uint64_t{1} << following(found)) - 1))];
  }

 private:
  static constexpr size_t kFirst = size_t{1} << kIndex;
  using Counts = std::array<uint16_t, kMostBits + 1>;  // of the code words of each length

  // Of the words that begin as `word`, whose length is `bits`, and follow it: by how many bits theirs is looked up.
  // `left` words of that length were not entered yet.
  static unsigned index_of(const Counts& counts, unsigned bits, int left) {
    unsigned index = bits - kIndex;
    for (int room = (1 << index) - left; room > 0 && kIndex + index < kMostBits; ++index)
      room = 2 * room - counts[kIndex + index + 1];
    return index;
  }
  // The word that follows in order: the last bit of a word is its most significant one here.
  static uint32_t next(uint32_t word, unsigned bits) {
    uint32_t bit = uint32_t{1} << (bits - 1);
    while (word & bit) bit >>= 1;
    return bit ? (word & (bit - 1)) | bit : 0;
  }

  std::array<Meaning, kEntries> entries_;
};

template <unsigned kIndex, size_t kEntries>
bool PrefixCode<kIndex, kEntries>::make(std::span<const uint8_t> lengths, std::span<const Meaning> meanings) {
  Counts counts{};
  for (const uint8_t length : lengths) ++counts[length];
  counts[0] = 0;
  int free = 1;
  unsigned longest = 0;
  std::array<uint16_t, kMostBits + 2> begin{};
  for (unsigned bits = 1; bits <= kMostBits; ++bits) {
    free = 2 * free - counts[bits];
    if (free < 0) return false;
    if (counts[bits] > 0) longest = bits;
    begin[bits + 1] = static_cast<uint16_t>(begin[bits] + counts[bits]);
  }
  if (free > 0) {
    if (longest > 1) return false;
    std::fill_n(entries_.begin(), kFirst, kNone | 1);
  }
  std::array<uint16_t, kMostSymbols> symbols;  // by the lengths of their words
  for (size_t symbol = 0; symbol < lengths.size(); ++symbol)
    if (lengths[symbol] > 0) symbols[begin[lengths[symbol]]++] = static_cast<uint16_t>(symbol);
  size_t used = kFirst, table = 0, symbol = 0;
  uint32_t word = 0, prefix = UINT32_MAX;
  unsigned index = 0;  // of `table`
  for (unsigned bits = 1; bits <= longest; ++bits)
    for (int left = counts[bits]; left > 0; --left, word = next(word, bits)) {
      Meaning found = meanings[symbols[symbol++]];
      found += following(found);
      if (bits <= kIndex) {
        for (size_t i = word; i < kFirst; i += size_t{1} << bits) entries_[i] = found + bits;
        continue;
      }
      if (prefix != (word & (kFirst - 1))) {
        prefix = word & (kFirst - 1);
        index = index_of(counts, bits, left);
        table = used;
        used += size_t{1} << index;
        if (used > kEntries) return false;
        entries_[prefix] = meaning(kFurther, static_cast<uint32_t>(table), index) + kIndex;
      }
      for (size_t i = word >> kIndex; i < size_t{1} << index; i += size_t{1} << (bits - kIndex))
        entries_[table + i] = found + (bits - kIndex);
    }
  return true;
}

}  // namespace lathe::deflate
