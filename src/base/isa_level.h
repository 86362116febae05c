// SPDX-License-Identifier: Apache-2.0
// Levels of instruction sets that code is compiled for, and which of them runs.
#pragma once

#include <string_view>

namespace lathe::cpu {

enum class IsaLevel { baseline, avx2, avx512 };

// The best level that the CPU and the operating system support, capped by the environment variable LATHE_CPU_ISA
// (a level's name; for tests). Decided once, at first use. Of a build for one level that level, which the CPU may lack.
IsaLevel isa_level();
bool supports(IsaLevel level);
std::string_view name_of(IsaLevel level);

}  // namespace lathe::cpu
