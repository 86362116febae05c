// SPDX-License-Identifier: Apache-2.0
// Compressed bytes: their size as they were, 8 bytes, little-endian, then a stream of zlib's format (RFC 1950).
// base/inflate.h reads them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"

namespace lathe {

inline constexpr size_t kDeflatedSizeBytes = 8;

Result<std::vector<std::byte>> deflate_bytes(std::span<const std::byte> bytes);

}  // namespace lathe
