// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <sodium/crypto_generichash.h>
#include <xxhash.h>

namespace lathe {

Hasher& Hasher::add(std::span<const std::byte> bytes) {
  state_ = XXH3_64bits_withSeed(bytes.data(), bytes.size(), state_);
  return *this;
}

Hasher& Hasher::add(std::string_view text) {
  add(static_cast<uint64_t>(text.size()));
  return add(std::as_bytes(std::span(text)));
}

Hasher& Hasher::add(uint64_t value) { return add(std::as_bytes(std::span(&value, 1))); }

Digest digest_of(std::span<const std::byte> bytes) {
  Digest digest;
  crypto_generichash(reinterpret_cast<unsigned char*>(digest.data()), digest.size(),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), nullptr, 0);
  return digest;
}

}  // namespace lathe
