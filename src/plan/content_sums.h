// SPDX-License-Identifier: Apache-2.0
// Checksum and digest of what a section holds. Those of large weights are made of the checksums and digests of pieces,
// which several threads can find at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"

namespace lathe::plan {

// Part of the format.
inline constexpr uint64_t kHashedPiece = uint64_t{4} << 20;

// Checksums tell accidents, digests, which take ten times as long, also intent.
enum class ContentCheck { none, checksum, digest };

struct ContentSums {
  uint64_t checksum = 0;
  Digest digest{};
};

// Of content that consists of pieces, from those of the pieces.
class PieceSums {
 public:
  explicit PieceSums(uint64_t bytes)
      : checksums_((bytes + kHashedPiece - 1) / kHashedPiece), digests_(checksums_.size()) {}
  size_t count() const { return checksums_.size(); }
  uint64_t& checksum(size_t piece) { return checksums_[piece]; }
  Digest& digest(size_t piece) { return digests_[piece]; }
  ContentSums sums() const;

 private:
  std::vector<uint64_t> checksums_;
  std::vector<Digest> digests_;
};

// The digest is found only where it is asked for; those of pieces on so many threads.
ContentSums sums_of(std::span<const std::byte> content, bool in_pieces, ContentCheck wanted, int threads);

}  // namespace lathe::plan
