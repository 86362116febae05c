// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace lathe::cpu {

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
