// SPDX-License-Identifier: Apache-2.0
// Bytes as hexadecimal digits, two for each.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace lathe {

std::string to_hex(std::span<const std::byte> bytes);
// False, and `bytes` are anything, unless the text has just their digits, of either case.
bool from_hex(std::string_view text, std::span<std::byte> bytes);

}  // namespace lathe
