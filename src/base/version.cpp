// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

#include <fmt/core.h>

// LATHE_VERSION comes from the project's version in CMakeLists.txt. Tests link libraries of other versions, for which
// this file and own_note.cpp alone are compiled once more.

namespace lathe {
namespace {

constexpr Version kVersion LATHE_VERSION;
#ifdef LATHE_RECORD_FORMATS
constexpr FormatRange kRecords LATHE_RECORD_FORMATS;
#else
constexpr FormatRange kRecords = kRecordFormats;
#endif

}  // namespace

std::string Version::to_string() const { return fmt::format("{}.{}.{}.{}", major, minor, patch, build); }

std::string Version::newer_than(const Version& own) const {
  return fmt::format("Lathe {}, which is newer than this Lathe {}", to_string(), own.to_string());
}

Version library_version() { return kVersion; }

FormatRange record_formats() { return kRecords; }

}  // namespace lathe
