// SPDX-License-Identifier: Apache-2.0
// Makes changed plans whole again, so that tests and fuzzers reach what lies behind header and digests.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "base/hash.h"
#include "plan/header.h"

namespace lathe::plan {

inline uint64_t load_le(const std::vector<std::byte>& bytes, size_t offset, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= static_cast<uint64_t>(bytes[offset + i]) << (8 * i);
  return value;
}

inline constexpr size_t kTableOffset = 320, kEntryBytes = 96, kChecksumOffset = 56;  // the latter of an entry

// Sections that lie outside the file keep their digest.
inline void repair_digests(std::vector<std::byte>& bytes) {
  if (bytes.size() < kHeaderBytes) return;
  const uint64_t count = std::min<uint64_t>(load_le(bytes, 260, 4), kMaxSections);
  for (size_t i = 0; i < count; ++i) {
    const size_t entry = kTableOffset + kEntryBytes * i;
    const uint64_t offset = load_le(bytes, entry + 40, 8), size = load_le(bytes, entry + 48, 8);
    if (offset < kHeaderBytes || offset > bytes.size() || size > bytes.size() - offset) continue;
    Section section;
    section.in_pieces = (load_le(bytes, entry + 28, 4) & 4) != 0;
    seal(section, std::span(bytes).subspan(offset, size));
    std::memcpy(bytes.data() + entry + kChecksumOffset, &section.checksum, sizeof section.checksum);
    std::memcpy(bytes.data() + entry + kChecksumOffset + 8, section.digest.data(), section.digest.size());
  }
  const uint64_t prefix = Hasher().add(std::span<const std::byte>(bytes).first(kPrefixBytes - 8)).value();
  std::memcpy(bytes.data() + kPrefixBytes - 8, &prefix, sizeof prefix);
  const Digest digest = digest_of(std::span(bytes).first(kHeaderBytes - sizeof(Digest)));
  std::memcpy(bytes.data() + kHeaderBytes - sizeof(Digest), digest.data(), digest.size());
}

// A correct file around any metadata, with a page of weights and as much code as wanted.
inline std::vector<std::byte> wrap_metadata(std::span<const std::byte> metadata, size_t code_bytes = 0) {
  PlanHeader header = make_header("");
  const std::vector<std::byte> code(code_bytes), weights(4096);
  const auto add = [&](std::string_view name, std::span<const std::byte> content) {
    seal(header.sections.emplace_back(named_section(name)), content);
  };
  add(kMetadata, metadata);
  if (!code.empty()) add(kCode, code);
  add(kWeights, weights);
  place_sections(header);
  std::vector<std::byte> bytes(header.plan_bytes);
  const auto head = encode_header(header);
  std::copy(head.begin(), head.end(), bytes.begin());
  std::copy(metadata.begin(), metadata.end(), bytes.begin() + kHeaderBytes);
  return bytes;
}

}  // namespace lathe::plan
