// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lathe {

// Bytes of the UTF-8 character that `text` starts with; 0 when there is none.
size_t utf8_bytes(std::string_view text);
// Whether all of it is UTF-8.
bool is_utf8(std::string_view text);
// The number of a character, which is UTF-8 of the length that utf8_bytes() tells.
unsigned code_of(std::string_view character);
// `code`: at most 0x10ffff, and no half of a surrogate pair.
std::string to_utf8(unsigned code);

}  // namespace lathe
