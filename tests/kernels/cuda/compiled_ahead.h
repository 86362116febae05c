// SPDX-License-Identifier: Apache-2.0
// Kernels for the emulator that this program's tests ask for, compiled together before the first test, which takes less
// than half of what compiling each by itself takes. A child of the process finds them: it runs the tests, but no
// kernel.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lathe::cuda {

void compile_ahead();

// Whether this is that child. Tests may fail there, which nobody is told; the further they come, the more kernels it
// finds.
bool only_notes_kernels();
// Whether it notes those that are asked for from now on.
void note_kernels(bool noted);
inline constexpr const char* kOnlyNoted = "kernels are noted here, and none is run";

// The emulator's form of a cubin. One that was not found is compiled now, by itself.
Result<std::vector<std::byte>> code_of_kernel(std::string_view source);

}  // namespace lathe::cuda
