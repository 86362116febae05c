// SPDX-License-Identifier: Apache-2.0
// Floats that become integers of 8 bits as they are stored.
#pragma once

#include "lib/types.cuh"

// The nearest integer, half to even, as T, of 8 bits, holds it; what is beyond becomes the nearest that T has, NaN 0.
// With kZero added to it, which T must hold.
template <class T, int kZero>
LATHE_DEVICE T level_of(float value) {
  static_assert(sizeof(T) == 1, "integers of 8 bits");
  int32 level;
#ifdef LATHE_EMULATED
  constexpr float kLeast = is_same<T, int8> ? -128 : 0, kLargest = is_same<T, int8> ? 127 : 255;
  const float bounded = value < kLeast ? kLeast : value > kLargest ? kLargest : value;
  level = value != value ? 0 : static_cast<int32>(__builtin_rintf(kZero == 0 ? bounded : value));
#else
  if constexpr (kZero != 0)
    asm("cvt.rni.s32.f32 %0, %1;" : "=r"(level) : "f"(value));
  else if constexpr (is_same<T, int8>)
    asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(level) : "f"(value));
  else
    asm("cvt.rni.sat.u8.f32 %0, %1;" : "=r"(level) : "f"(value));
#endif
  if constexpr (kZero != 0) level = value != value ? 0 : level + kZero;
  return static_cast<T>(level);
}

// Four of them without kZero: two instructions.
template <class T>
LATHE_DEVICE uint32 four_levels(const float* from) {
#ifdef LATHE_EMULATED
  uint32 word = 0;
  for (int i = 0; i < 4; ++i) word |= static_cast<uint32>(static_cast<uint8>(level_of<T, 0>(from[i]))) << 8 * i;
  return word;
#else
  int32 levels[4];
  LATHE_UNROLL
  for (int i = 0; i < 4; ++i) asm("cvt.rni.s32.f32 %0, %1;" : "=r"(levels[i]) : "f"(from[i]));
  uint32 word;
#define LATHE_PACK_LEVELS(type)                            \
  asm("{\n.reg .b32 high;\ncvt.pack.sat." type             \
      ".s32.b32 high, %4, %3, 0;\n"                        \
      "cvt.pack.sat." type ".s32.b32 %0, %2, %1, high;\n}" \
      : "=r"(word)                                         \
      : "r"(levels[0]), "r"(levels[1]), "r"(levels[2]), "r"(levels[3]))
  if constexpr (is_same<T, int8>)
    LATHE_PACK_LEVELS("s8");
  else
    LATHE_PACK_LEVELS("u8");
#undef LATHE_PACK_LEVELS
  return word;
#endif
}
