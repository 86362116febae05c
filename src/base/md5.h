// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace lathe {

// MD5 (RFC 1321), for comparing files with what other programs say of them: it protects against no attack.
std::array<std::byte, 16> md5_of(std::span<const std::byte> bytes);

}  // namespace lathe
