// SPDX-License-Identifier: Apache-2.0
#include "base/isa_level.h"

#include <cstdlib>

#include "cpu_isa_levels.inc"

namespace lathe::cpu {
namespace {

IsaLevel best_supported() {
#if defined(__x86_64__)
  // The builtins check CPUID and, through XGETBV, that the operating system saves the registers.
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return IsaLevel::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
    return IsaLevel::avx2;
#endif
  return IsaLevel::baseline;
}

}  // namespace

std::string_view name_of(IsaLevel level) {
  switch (level) {
    case IsaLevel::avx512:
      return "avx512";
    case IsaLevel::avx2:
      return "avx2";
    case IsaLevel::baseline:
      break;
  }
  return "baseline";
}

bool supports(IsaLevel level) { return level <= best_supported(); }

#if defined(LATHE_ISA_ONLY)
IsaLevel isa_level() { return IsaLevel::LATHE_ISA_ONLY; }
#else
IsaLevel isa_level() {
  static const IsaLevel level = [] {
    const IsaLevel best = best_supported();
    const char* cap = std::getenv("LATHE_CPU_ISA");
    if (!cap) return best;
    for (IsaLevel candidate : {IsaLevel::baseline, IsaLevel::avx2})
      if (name_of(candidate) == cap && candidate < best) return candidate;
    return best;
  }();
  return level;
}
#endif

}  // namespace lathe::cpu
