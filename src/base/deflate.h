// SPDX-License-Identifier: Apache-2.0
// Compressed bytes: their size as they were, 8 bytes, little-endian, then a stream of zlib's format (RFC 1950).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"

namespace lathe {

Result<std::vector<std::byte>> deflate_bytes(std::span<const std::byte> bytes);

// Takes no more memory than `most` bytes; fails with plan_malformed where there are more, or the stream is damaged.
Result<std::vector<std::byte>> inflate_bytes(std::span<const std::byte> compressed, size_t most);

}  // namespace lathe
