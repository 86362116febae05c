// SPDX-License-Identifier: Apache-2.0
// The fixed header of a plan file: what can be known without a device and without reading the rest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "base/version.h"

namespace lathe::plan {

// Numbers are part of the format.
enum class SectionKind : uint32_t { metadata = 1, weights = 2, signature = 3, code = 4 };
enum class TrustClass : uint32_t { data = 0, device_code = 1, host_code = 2 };
enum class OperatingSystem : uint32_t { other = 0, linux_os = 1 };
enum class Architecture : uint32_t { other = 0, x86_64 = 1, arm64 = 2 };

struct Section {
  SectionKind kind = SectionKind::metadata;
  TrustClass trust = TrustClass::data;
  uint64_t offset = 0;  // from the start of the header
  uint64_t bytes = 0;
  Digest digest{};
  uint64_t checksum = 0;  // against accidents; the digest, ten times as slow, against intent
};

// Sets digest and checksum from the section's content.
void seal(Section& section, std::span<const std::byte> content);

inline constexpr size_t kHeaderBytes = 1024;
inline constexpr size_t kMaxSections = 8;
inline constexpr uint32_t kFormatVersion = 1;

struct PlanHeader {
  Version version;
  OperatingSystem os = OperatingSystem::other;
  Architecture architecture = Architecture::other;
  uint32_t compatibility = 0;
  uint64_t flags = 0;
  std::string target;
  uint64_t plan_bytes = 0;    // without a foreign prefix
  uint64_t prefix_bytes = 0;  // of the foreign prefix; not stored
  std::vector<Section> sections;

  const Section* find(SectionKind kind) const;
};

OperatingSystem host_os();
Architecture host_architecture();

// Skips a foreign prefix, then checks magic, format version, sizes, digest and section table. The version of the
// library and the machine are not compared: this is also for looking at plans of others.
Result<PlanHeader> read_header(std::span<const std::byte> bytes);

// Places the sections (offsets from the byte counts) and sets plan_bytes.
void place_sections(PlanHeader& header);
std::array<std::byte, kHeaderBytes> encode_header(const PlanHeader& header);

// What a signature signs: the header with the digest of the signature's own section left out.
Digest signed_digest(PlanHeader header);

}  // namespace lathe::plan
