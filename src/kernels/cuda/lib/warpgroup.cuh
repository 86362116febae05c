// SPDX-License-Identifier: Apache-2.0
// The matrix units as four warps use them together (sm_90a): operands in shared memory, asynchronous. PTX ISA, section
// "Asynchronous warpgroup level matrix instructions".
#pragma once

#include "lib/intrinsics.cuh"

#ifndef LATHE_EMULATED

// What this thread wrote to shared memory, by itself or by asynchronous copies that it waited for, is seen by the
// matrix units after the next barrier.
LATHE_DEVICE void matrix_units_fence() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Before the first product, and after other code has touched the sums.
LATHE_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
LATHE_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending>
LATHE_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Rows of 128 bytes whose chunks of 16 are permuted by XOR with the row's number, as Panel does; eight rows are 1024
// bytes, and begin at a multiple of that.
LATHE_DEVICE uint64 panel_descriptor(const void* shared) {
  constexpr uint64 kEightRows = 1024 >> 4, kPermuted128 = 1;
  return static_cast<uint64>(shared_address(shared) >> 4) | uint64{1} << 16 | kEightRows << 32 | kPermuted128 << 62;
}

#define LATHE_SUMS(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define LATHE_WGMMA_32(type)                                       \
  asm volatile(                                                    \
      "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"                   \
      "wgmma.mma_async.sync.aligned.m64n32k16.f32." type "." type  \
      " {"                                                         \
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"      \
      "}, %16, %17, p, 1, 1, 0, 0;\n}"                             \
      : LATHE_SUMS(0), LATHE_SUMS(1), LATHE_SUMS(2), LATHE_SUMS(3) \
      : "l"(a), "l"(b))
#define LATHE_WGMMA_64(type)                                                                                     \
  asm volatile(                                                                                                  \
      "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"                                                                 \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                                                \
      " {"                                                                                                       \
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                                                   \
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"                                          \
      "}, %32, %33, p, 1, 1, 0, 0;\n}"                                                                           \
      : LATHE_SUMS(0), LATHE_SUMS(1), LATHE_SUMS(2), LATHE_SUMS(3), LATHE_SUMS(4), LATHE_SUMS(5), LATHE_SUMS(6), \
        LATHE_SUMS(7)                                                                                            \
      : "l"(a), "l"(b))
#define LATHE_WGMMA_128(type)                                                                                        \
  asm volatile(                                                                                                      \
      "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"                                                                     \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type                                                   \
      " {"                                                                                                           \
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                                                       \
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"                                             \
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"                                             \
      "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"                                              \
      "}, %64, %65, p, 1, 1, 0, 0;\n}"                                                                               \
      : LATHE_SUMS(0), LATHE_SUMS(1), LATHE_SUMS(2), LATHE_SUMS(3), LATHE_SUMS(4), LATHE_SUMS(5), LATHE_SUMS(6),     \
        LATHE_SUMS(7), LATHE_SUMS(8), LATHE_SUMS(9), LATHE_SUMS(10), LATHE_SUMS(11), LATHE_SUMS(12), LATHE_SUMS(13), \
        LATHE_SUMS(14), LATHE_SUMS(15)                                                                               \
      : "l"(a), "l"(b))
#define LATHE_WGMMA_256(type)                                                                                        \
  asm volatile(                                                                                                      \
      "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"                                                                     \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type                                                   \
      " {"                                                                                                           \
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                                                       \
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"                                             \
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"                                             \
      "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,"                                             \
      "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,"                                             \
      "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,"                                             \
      "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,"                                 \
      "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"                              \
      "}, %128, %129, p, 1, 1, 0, 0;\n}"                                                                             \
      : LATHE_SUMS(0), LATHE_SUMS(1), LATHE_SUMS(2), LATHE_SUMS(3), LATHE_SUMS(4), LATHE_SUMS(5), LATHE_SUMS(6),     \
        LATHE_SUMS(7), LATHE_SUMS(8), LATHE_SUMS(9), LATHE_SUMS(10), LATHE_SUMS(11), LATHE_SUMS(12), LATHE_SUMS(13), \
        LATHE_SUMS(14), LATHE_SUMS(15), LATHE_SUMS(16), LATHE_SUMS(17), LATHE_SUMS(18), LATHE_SUMS(19),              \
        LATHE_SUMS(20), LATHE_SUMS(21), LATHE_SUMS(22), LATHE_SUMS(23), LATHE_SUMS(24), LATHE_SUMS(25),              \
        LATHE_SUMS(26), LATHE_SUMS(27), LATHE_SUMS(28), LATHE_SUMS(29), LATHE_SUMS(30), LATHE_SUMS(31)               \
      : "l"(a), "l"(b))

// d += a * b: 64 rows of a, N rows of b, 16 columns of each; a thread's sums are those of mma_m16n8k16 for its warp's
// 16 rows and each 8 columns. Every thread of the four warps comes here.
template <int N, class T>
LATHE_DEVICE void wgmma_k16(float (&d)[N / 8][4], const void* panel_a, const void* panel_b, T) {
  static_assert(is_same<T, f16> || is_same<T, bf16>, "16-bit floats");
  const uint64 a = panel_descriptor(panel_a), b = panel_descriptor(panel_b);
#define LATHE_WGMMA(n)                                             \
  if constexpr (N == n && is_same<T, f16>) LATHE_WGMMA_##n("f16"); \
  if constexpr (N == n && is_same<T, bf16>) LATHE_WGMMA_##n("bf16")
  LATHE_WGMMA(32);
  LATHE_WGMMA(64);
  LATHE_WGMMA(128);
  LATHE_WGMMA(256);
#undef LATHE_WGMMA
}
#undef LATHE_WGMMA_32
#undef LATHE_WGMMA_64
#undef LATHE_WGMMA_128
#undef LATHE_WGMMA_256
#undef LATHE_SUMS

#else  // tactics do not choose them for other architectures

LATHE_DEVICE void wgmma_fence() {}
LATHE_DEVICE void wgmma_commit() {}
template <int kPending>
LATHE_DEVICE void wgmma_wait() {}
template <int N, class T>
LATHE_DEVICE void wgmma_k16(float (&)[N / 8][4], const void*, const void*, T) {
  asm volatile("trap;");
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL
#endif  // LATHE_EMULATED
