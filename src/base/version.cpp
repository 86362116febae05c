// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

#include <fmt/core.h>

#include "base/library_note.h"

// LATHE_VERSION comes from the project's version in CMakeLists.txt, LATHE_GENERATION says which generation of the
// interface the library has. Tests link libraries of other versions, for which this file alone is compiled once more.

namespace lathe {
namespace {

constexpr Version kVersion LATHE_VERSION;
#ifdef LATHE_RECORD_FORMATS
constexpr FormatRange kRecords LATHE_RECORD_FORMATS;
#else
constexpr FormatRange kRecords = kRecordFormats;
#endif

// Readable without running the library: base/library_note.h.
[[gnu::used, gnu::section(".note.lathe"), gnu::aligned(4)]] const LibraryNote kNote = {
    .version = {kVersion.major, kVersion.minor, kVersion.patch, kVersion.build},
    .generation = LATHE_GENERATION,
    .interface_level = kInterfaceLevel};

}  // namespace

std::string Version::to_string() const { return fmt::format("{}.{}.{}.{}", major, minor, patch, build); }

Version library_version() { return kVersion; }

FormatRange record_formats() { return kRecords; }

}  // namespace lathe
