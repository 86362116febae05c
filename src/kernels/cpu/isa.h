// SPDX-License-Identifier: Apache-2.0
// Run-time dispatch among ISA levels. A *_simd.cpp file is compiled once per level with LATHE_ISA set to the level's
// name; everything in it lives in namespace lathe::cpu::LATHE_ISA, so that no code compiled with wide flags is
// reachable before the choice is made. Such files define no inline function that another file could also define.
#pragma once

#include <cstdint>

#include "base/isa_level.h"

// Code that chooses among the levels, unlike the levels' own, follows the build: it may have the kernels of one level
// alone (cmake -DLATHE_CPU_KERNELS=native), which this names.
#if !defined(LATHE_ISA)
#include "cpu_isa_levels.inc"  // #define LATHE_ISA_ONLY avx2, or nothing
#endif

namespace lathe::cpu {

// Whether the CPU has the level's instruction for sums of four products of u8 and i8 (VNNI), which the level itself
// does not include.
bool multiplies_bytes();
// Likewise that which takes bytes from two vectors by their numbers (VBMI).
bool permutes_bytes();
// Likewise that for sums of two products of bf16 (AVX512-BF16).
bool multiplies_bf16();
// Whether it has matrix registers and their products of u8, i8 and bf16 (AMX) beside those of bf16 in vectors, and the
// system lets this process use them. The first call asks the system to.
bool has_matrix_registers();
// How many bytes ahead of what it reads a kernel asks for lines of a long stream that it computes with (decisions 0089
// and 0141).
int64_t fetch_distance();

}  // namespace lathe::cpu

// LATHE_ISA_DECLARE(R f(A)): declares the function in every level's namespace.
// LATHE_ISA_SELECT(f): the pointer for the running CPU, e.g. static const auto gemm = LATHE_ISA_SELECT(gemm_tile);
#if defined(LATHE_ISA_ONLY)
#define LATHE_ISA_DECLARE(...) \
  namespace LATHE_ISA_ONLY {   \
  __VA_ARGS__;                 \
  }
#define LATHE_ISA_SELECT(f) (&::lathe::cpu::LATHE_ISA_ONLY::f)
#elif defined(__x86_64__)
#define LATHE_ISA_DECLARE(...) \
  namespace baseline {         \
  __VA_ARGS__;                 \
  }                            \
  namespace avx2 {             \
  __VA_ARGS__;                 \
  }                            \
  namespace avx512 {           \
  __VA_ARGS__;                 \
  }
#define LATHE_ISA_SELECT(f)                                                               \
  (::lathe::cpu::isa_level() == ::lathe::cpu::IsaLevel::avx512 ? &::lathe::cpu::avx512::f \
   : ::lathe::cpu::isa_level() == ::lathe::cpu::IsaLevel::avx2 ? &::lathe::cpu::avx2::f   \
                                                               : &::lathe::cpu::baseline::f)
#else
#define LATHE_ISA_DECLARE(...) \
  namespace baseline {         \
  __VA_ARGS__;                 \
  }
#define LATHE_ISA_SELECT(f) (&::lathe::cpu::baseline::f)
#endif
