// SPDX-License-Identifier: Apache-2.0
// Code that is compressed in a library's file (cmake/pack_code.py, cmake/pack_kernels.py), and put to where it runs.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace lathe {

// Sees to it that packed functions can be called: kernels of CPUs, but for those of instruction sets, and the plain
// evaluation of ops. Nobody may do so before. Most libraries have them linked (linked_code.cpp), and this does nothing.
// Where they are packed (packed_code.cpp), the first call unpacks them; it fails where the system allows no code to be
// mapped. May be called from any thread.
Result<> have_packed_code();

// Code with what it reads, `executable` bytes, and then what it writes.
struct CodeContent {
  std::string name;  // which /proc/self/maps and profilers show, where the system has files in memory
  std::span<const std::byte> bytes;
  size_t executable;
};

// Over what is mapped at `to`, the start of a page.
Result<> map_code(const CodeContent& code, std::byte* to);

}  // namespace lathe
