// SPDX-License-Identifier: Apache-2.0
// Hashes. Hasher is for tables and cache keys (64-bit, stable across runs and machines); digest is for integrity.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace lathe {

class Hasher {
 public:
  Hasher& add(std::span<const std::byte> bytes);
  Hasher& add(std::string_view text);  // length-prefixed, so that ("ab","c") and ("a","bc") differ
  Hasher& add(uint64_t value);
  constexpr uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0x9e3779b97f4a7c15ull;
};

// BLAKE2b-256.
using Digest = std::array<std::byte, 32>;
Digest digest_of(std::span<const std::byte> bytes);

// Both of content that comes in parts: what Hasher().add() and digest_of() make of the whole.
class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  void restart();
  void add(std::span<const std::byte> part);
  uint64_t checksum() const;
  Digest digest();  // once, at the end

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lathe
