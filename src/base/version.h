// SPDX-License-Identifier: Apache-2.0
// The version of this library, as it is written into plans and caches.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>

namespace lathe {

struct Version {
  uint32_t major = 0;
  uint32_t minor = 0;
  uint32_t patch = 0;
  uint32_t build = 0;

  auto operator<=>(const Version&) const = default;
  std::string to_string() const;  // "0.1.0.0"
  // For messages: "Lathe 0.2.0.0, which is newer than this Lathe 0.1.0.0".
  std::string newer_than(const Version& own) const;
};

Version library_version();

// The version of TensorRT whose interface include/ has: major, minor, patch, build.
inline constexpr std::array<uint8_t, 4> kInterfaceVersion = {11, 1, 0, 106};

// Grows by one with each release that adds functions to the tables of a generation: docs/compatibility.md.
inline constexpr uint32_t kInterfaceLevel = 2;

// Numbers of a format that a library reads: all from the oldest to the newest, which it writes.
struct FormatRange {
  uint32_t oldest = 1;
  uint32_t newest = 1;
  bool holds(uint32_t number) const { return oldest <= number && number <= newest; }
};

// What version-compatible plans are written in, besides the plan format; docs/compatibility.md says what each covers.
inline constexpr FormatRange kMetadataFormats = {1, 1};
inline constexpr FormatRange kRecordFormats = {1, 1};
// The first version that wrote such plans: none before it wrote any that another version reads.
inline constexpr Version kOldestCompatible = {0, 1, 0, 0};

FormatRange record_formats();  // kRecordFormats, but for libraries of tests

}  // namespace lathe
