// SPDX-License-Identifier: Apache-2.0
// The prefix and the header of a plan file: what can be known without a device and without reading the rest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "base/version.h"
#include "device/hardware.h"

namespace lathe::plan {

// Numbers are part of the format.
enum class TrustClass : uint32_t { data = 0, device_code = 1, host_code = 2 };
enum class OperatingSystem : uint32_t { other = 0, linux_os = 1 };
enum class HostArchitecture : uint32_t { other = 0, x86_64 = 1, arm64 = 2 };

// Names of sections are part of the format, too.
inline constexpr std::string_view kMetadata = "metadata", kCode = "code", kWeights = "weights",
                                  kSignature = "signature", kLeanRuntime = "lean_runtime";

struct Section {
  std::string name;
  TrustClass trust = TrustClass::data;
  bool skippable = false;  // who does not know the name may do without it
  bool detached = false;   // what is told here of its content is true, but the content is not in this file
  bool in_pieces = false;  // checksum and digest are those of its pieces' (plan/content_sums.h)
  uint32_t alignment = 1;  // of its offset; a power of 2
  uint64_t offset = 0;     // from the start of the prefix; 0 when detached
  uint64_t bytes = 0;
  uint64_t checksum = 0;  // against accidents; the digest, ten times as slow, against intent
  Digest digest{};
};

// A section of the name that this version knows, with its trust class and alignment.
Section named_section(std::string_view name);
// Sets size, digest and checksum from the section's content, those of its pieces where it is so.
void seal(Section& section, std::span<const std::byte> content);

// What the fixed prefix holds, in plans of every version from format 2 on.
struct PlanPrefix {
  uint32_t format = 0;
  uint32_t header_bytes = 0;                                     // with the prefix
  std::array<uint8_t, 4> interface_version = kInterfaceVersion;  // of the writer
  Version version;                                               // of the library that wrote it
  uint64_t plan_bytes = 0;                                       // without a foreign prefix
  OperatingSystem os = OperatingSystem::other;
  HostArchitecture architecture = HostArchitecture::other;
  std::string target;
};

inline constexpr size_t kPrefixBytes = 256;
inline constexpr size_t kHeaderBytes = 2048;
inline constexpr size_t kMaxSections = 16;
inline constexpr uint32_t kFormatVersion = 2;

// Who reads a plan. Numbers are part of the format.
enum class Compatibility : uint32_t {
  same_version = 0,   // the version that wrote it, nothing else
  later_versions = 1  // every later one of the same major version that still reads the formats below
};

// Which GPUs run a plan for a target. Numbers are part of the format, and the interface's.
enum class HardwareCompatibility : uint32_t {
  none = 0,                    // those of its compute capability, with a warning of each property that differs
  ampere_plus = 1,             // those of compute capability 8.0 and later
  same_compute_capability = 2  // those of its compute capability, whatever they are besides
};

// Header flags, whose numbers are part of the format: what a reader that does not know it would misunderstand.
inline constexpr uint64_t kLacksWeights = 1;  // some constants are stripped: they come with a refit
inline constexpr uint64_t kKnownFlags = kLacksWeights;

struct PlanHeader : PlanPrefix {
  Compatibility compatibility = Compatibility::same_version;
  uint64_t flags = 0;
  // Of plans for later versions: kMetadataFormats and kRecordFormats of base/version.h. Of others 0.
  uint32_t metadata_format = 0;
  uint32_t record_format = 0;
  HardwareCompatibility hardware_compatibility = HardwareCompatibility::none;
  HardwareProperties hardware;  // of the device that it was tuned on; of plans that were built without one, nothing
  std::vector<Section> sections;
  uint64_t prefix_bytes = 0;  // of the foreign prefix; not stored

  const Section* find(std::string_view name) const;
};

OperatingSystem host_os();
HostArchitecture host_architecture();
// Format, version and machine are this library's and this machine's.
PlanHeader make_header(std::string target);

// Skips a foreign prefix, then reads the prefix of a plan of any format. It is damaged when its checksum does not
// match.
Result<PlanPrefix> read_prefix(std::span<const std::byte> bytes);

// Skips a foreign prefix, then checks magic, format version, sizes, digest and section table. The version of the
// library and the machine are not compared: this is also for looking at plans of others.
Result<PlanHeader> read_header(std::span<const std::byte> bytes);

// Places the sections (offsets from the byte counts) and sets plan_bytes.
void place_sections(PlanHeader& header);
std::array<std::byte, kHeaderBytes> encode_header(const PlanHeader& header);

// What a signature signs: the header with the digest of the signature's own section left out.
Digest signed_digest(PlanHeader header);

}  // namespace lathe::plan
