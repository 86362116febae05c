// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lathe {

// The texts that the lambda `texts` gives as an array of string views, by their positions in it. They lie behind one
// another, each ended by a zero, and no pointers say where, for a pointer takes 32 bytes of a shared library: its
// place, and what has the loader adjust it.
template <auto texts>
class TextTable {
 public:
  static constexpr size_t kCount = texts().size();
  static constexpr const char* at(size_t i) { return kContent.characters.data() + kContent.offsets[i]; }

 private:
  static constexpr size_t kSize = [] {
    size_t size = 0;
    for (const std::string_view text : texts()) size += text.size() + 1;
    return size;
  }();
  static_assert(kSize <= UINT16_MAX);
  struct Content {
    std::array<char, kSize> characters{};
    std::array<uint16_t, kCount> offsets{};
  };
  static constexpr Content kContent = [] {
    Content content;
    size_t end = 0, i = 0;
    for (const std::string_view text : texts()) {
      content.offsets[i++] = static_cast<uint16_t>(end);
      for (const char c : text) content.characters[end++] = c;
      ++end;
    }
    return content;
  }();
};

}  // namespace lathe
