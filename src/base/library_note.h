// SPDX-License-Identifier: Apache-2.0
// What is written into the file of a library of ours, so that it can be told what it is before any of its code runs: an
// ELF note, in a segment PT_NOTE.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/version.h"

namespace lathe {

// As it lies in the file; the layout is the same in all versions, later ones may have more behind it.
struct LibraryNote {
  uint32_t name_bytes = 6, content_bytes = 24, type = 1;
  std::array<char, 8> name = {'L', 'a', 't', 'h', 'e'};
  std::array<uint32_t, 4> version{};
  uint32_t generation = 0;  // of the interface: 10 or 11
  uint32_t interface_level = 0;

  Version library_version() const { return {version[0], version[1], version[2], version[3]}; }
};

// Of a shared library of this machine's format. Fails with library_refused where the file is none, or none of Lathe's.
Result<LibraryNote> read_library_note(std::span<const std::byte> file);

// The file without what loading it does not take: symbols and lines for debuggers, the table of sections.
Result<std::vector<std::byte>> strip_library(std::span<const std::byte> file);

}  // namespace lathe
