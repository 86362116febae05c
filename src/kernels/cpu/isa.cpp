// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
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

int64_t fetch_distance() { return isa_level() == IsaLevel::avx512 ? 1536 : 2560; }

bool has_matrix_registers() {
#if defined(__x86_64__) && defined(__linux__)
  static const bool result = [] {
    constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25, kAll = kBf16 | kTile | kInt8;
    unsigned a = 0, b = 0, c = 0, d = 0;
    // What is multiplied there is rounded by instructions that go with products in vectors.
    if (!multiplies_bf16() || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kAll) != kAll) return false;
    // Their 8 KiB are saved for those processes alone that asked (Documentation/arch/x86/xstate.rst of Linux).
    constexpr long kRequestPermission = 0x1023, kTileData = 18;
    return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return result;
#else
  return false;
#endif
}

}  // namespace lathe::cpu
