// SPDX-License-Identifier: Apache-2.0
#include "plan/content_sums.h"

#include <algorithm>

#include "base/for_each_in_threads.h"

namespace lathe::plan {

ContentSums PieceSums::sums() const {
  return {Hasher().add(std::as_bytes(std::span(checksums_))).value(), digest_of(std::as_bytes(std::span(digests_)))};
}

ContentSums sums_of(std::span<const std::byte> content, bool in_pieces, ContentCheck wanted, int threads) {
  const auto set = [&](std::span<const std::byte> bytes, uint64_t& checksum, Digest& digest) {
    checksum = Hasher().add(bytes).value();
    if (wanted == ContentCheck::digest) digest = digest_of(bytes);
  };
  if (!in_pieces) {
    ContentSums sums;
    set(content, sums.checksum, sums.digest);
    return sums;
  }
  PieceSums pieces(content.size());
  for_each_in_threads(pieces.count(), threads, [&](size_t i, size_t) {
    const auto behind = content.subspan(i * kHashedPiece);
    set(behind.first(std::min(behind.size(), kHashedPiece)), pieces.checksum(i), pieces.digest(i));
  });
  return pieces.sums();
}

}  // namespace lathe::plan
