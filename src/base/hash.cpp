// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <sodium/crypto_generichash.h>
#include <xxhash.h>

namespace lathe {
namespace {

constexpr uint64_t kSeed = Hasher().value();

}  // namespace

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

struct ContentHash::State {
  XXH3_state_t checksum;
  crypto_generichash_state digest;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) { restart(); }

void ContentHash::restart() {
  XXH3_64bits_reset_withSeed(&state_->checksum, kSeed);
  crypto_generichash_init(&state_->digest, nullptr, 0, sizeof(Digest));
}

ContentHash::~ContentHash() = default;

void ContentHash::add(std::span<const std::byte> part) {
  XXH3_64bits_update(&state_->checksum, part.data(), part.size());
  crypto_generichash_update(&state_->digest, reinterpret_cast<const unsigned char*>(part.data()), part.size());
}

uint64_t ContentHash::checksum() const { return XXH3_64bits_digest(&state_->checksum); }

Digest ContentHash::digest() {
  Digest digest;
  crypto_generichash_final(&state_->digest, reinterpret_cast<unsigned char*>(digest.data()), digest.size());
  return digest;
}

}  // namespace lathe
