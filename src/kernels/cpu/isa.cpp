// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/isa.h"

#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

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

bool multiplies_bf16() {
#if defined(__x86_64__)
  static const bool result = isa_level() == IsaLevel::avx512 && __builtin_cpu_supports("avx512bf16");
  return result;
#else
  return false;
#endif
}

bool multiplies_bytes() {
#if defined(__x86_64__)
  static const bool result = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (isa_level() == IsaLevel::baseline || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    if (isa_level() == IsaLevel::avx512) return (c >> 11 & 1) != 0;                 // AVX512_VNNI
    return a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1) != 0;  // AVX-VNNI
  }();
  return result;
#else
  return false;
#endif
}

bool permutes_bytes() {
#if defined(__x86_64__)
  static const bool result = isa_level() == IsaLevel::avx512 && __builtin_cpu_supports("avx512vbmi");
  return result;
#else
  return false;
#endif
}

}  // namespace lathe::cpu
