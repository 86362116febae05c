// SPDX-License-Identifier: Apache-2.0
// The matrix units as four warps use them together (sm_90a): operands in shared memory, asynchronous. PTX ISA, section
// "Asynchronous warpgroup level matrix instructions".
#pragma once

#include "lib/intrinsics.cuh"

// The first row of a warp, of the 64 that its group multiplies. No register to spare for what is 0.
template <int kGroups>
LATHE_DEVICE int row_of_warp() {
  return (kGroups == 1 ? warp() : warp() % 4) * 16;
}

#ifndef LATHE_EMULATED

// What this thread wrote to shared memory, by itself or by asynchronous copies that it waited for, is seen by the
// matrix units after the next barrier.
LATHE_DEVICE void matrix_units_fence() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// How an operand lies in shared memory: in rows of 128 bytes whose chunks of 16 are permuted by XOR with the row's
// number, as Panel does; eight rows are 1024 bytes, and begin at a multiple of that. Rows run along K or, MN-major,
// along M or N: what is longer than a row goes on kPanelBytes behind it. A place is computed once, of an address in
// shared memory; others are some bytes, a multiple of 16, behind it.
template <bool kMnMajor, int kPanelBytes>
struct PanelPlace {
  static constexpr unsigned kAddresses = (1 << 18) - 1;  // within a block: above it says which of a cluster
  static constexpr unsigned kNextPanel = kMnMajor ? kPanelBytes >> 4 : 1;
  unsigned low;  // of the descriptor

  LATHE_DEVICE_MEMBER explicit PanelPlace(unsigned shared) : low((shared & kAddresses) >> 4 | kNextPanel << 16) {}
  LATHE_DEVICE_MEMBER PanelPlace operator+(int bytes) const {
    PanelPlace moved = *this;
    moved.low += static_cast<unsigned>(bytes) >> 4;
    return moved;
  }
};
template <bool kMnMajor, int kPanelBytes>
LATHE_DEVICE uint64 panel_descriptor(PanelPlace<kMnMajor, kPanelBytes> place) {
  constexpr uint64 kEightRows = 1024 >> 4, kPermuted128 = 1;
  return place.low | kEightRows << 32 | kPermuted128 << 62;
}
template <bool kMnMajor, int kPanelBytes>
LATHE_DEVICE uint64 panel_descriptor(const void* shared) {
  return panel_descriptor(PanelPlace<kMnMajor, kPanelBytes>(shared_address(shared)));
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Before the first product, and after other code has touched the sums.
LATHE_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
LATHE_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending>
LATHE_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// The registers of N columns, and the sums that they stand for; then, as P0 to P6, what follows them in the
// instruction.
#define LATHE_REGISTERS_32 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define LATHE_REGISTERS_48 LATHE_REGISTERS_32 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define LATHE_REGISTERS_64 LATHE_REGISTERS_32 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define LATHE_REGISTERS_72 LATHE_REGISTERS_64 ",%32,%33,%34,%35"
#define LATHE_REGISTERS_80 LATHE_REGISTERS_64 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define LATHE_REGISTERS_96 LATHE_REGISTERS_64 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define LATHE_REGISTERS_128 LATHE_REGISTERS_96 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define LATHE_REGISTERS_136 LATHE_REGISTERS_128 ",%64,%65,%66,%67"
#define LATHE_REGISTERS_160 LATHE_REGISTERS_128 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define LATHE_REGISTERS_176 LATHE_REGISTERS_160 ",%80,%81,%82,%83,%84,%85,%86,%87"
#define LATHE_REGISTERS_192 LATHE_REGISTERS_176 ",%88,%89,%90,%91,%92,%93,%94,%95"
#define LATHE_REGISTERS_256                                                      \
  LATHE_REGISTERS_192                                                            \
  ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111" \
  ",%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
// c: "+f" for floats, "+r" for integers.
#define LATHE_SUM(c, j) c(d[j][0]), c(d[j][1]), c(d[j][2]), c(d[j][3])
#define LATHE_SUMS_32(c) LATHE_SUM(c, 0), LATHE_SUM(c, 1), LATHE_SUM(c, 2), LATHE_SUM(c, 3)
#define LATHE_SUMS_48(c) LATHE_SUMS_32(c), LATHE_SUM(c, 4), LATHE_SUM(c, 5)
#define LATHE_SUMS_64(c) LATHE_SUMS_32(c), LATHE_SUM(c, 4), LATHE_SUM(c, 5), LATHE_SUM(c, 6), LATHE_SUM(c, 7)
#define LATHE_SUMS_72(c) LATHE_SUMS_64(c), LATHE_SUM(c, 8)
#define LATHE_SUMS_80(c) LATHE_SUMS_64(c), LATHE_SUM(c, 8), LATHE_SUM(c, 9)
#define LATHE_SUMS_96(c) LATHE_SUMS_64(c), LATHE_SUM(c, 8), LATHE_SUM(c, 9), LATHE_SUM(c, 10), LATHE_SUM(c, 11)
#define LATHE_SUMS_128(c) LATHE_SUMS_96(c), LATHE_SUM(c, 12), LATHE_SUM(c, 13), LATHE_SUM(c, 14), LATHE_SUM(c, 15)
#define LATHE_SUMS_136(c) LATHE_SUMS_128(c), LATHE_SUM(c, 16)
#define LATHE_SUMS_160(c) LATHE_SUMS_128(c), LATHE_SUM(c, 16), LATHE_SUM(c, 17), LATHE_SUM(c, 18), LATHE_SUM(c, 19)
#define LATHE_SUMS_176(c) LATHE_SUMS_160(c), LATHE_SUM(c, 20), LATHE_SUM(c, 21)
#define LATHE_SUMS_192(c) LATHE_SUMS_176(c), LATHE_SUM(c, 22), LATHE_SUM(c, 23)
#define LATHE_SUMS_256(c)                                                                                      \
  LATHE_SUMS_192(c), LATHE_SUM(c, 24), LATHE_SUM(c, 25), LATHE_SUM(c, 26), LATHE_SUM(c, 27), LATHE_SUM(c, 28), \
      LATHE_SUM(c, 29), LATHE_SUM(c, 30), LATHE_SUM(c, 31)
#define LATHE_PLACES_32(text) text("%16", "%17", "%18", "%19", "%20", "%21", "%22")
#define LATHE_PLACES_48(text) text("%24", "%25", "%26", "%27", "%28", "%29", "%30")
#define LATHE_PLACES_64(text) text("%32", "%33", "%34", "%35", "%36", "%37", "%38")
#define LATHE_PLACES_72(text) text("%36", "%37", "%38", "%39", "%40", "%41", "%42")
#define LATHE_PLACES_80(text) text("%40", "%41", "%42", "%43", "%44", "%45", "%46")
#define LATHE_PLACES_96(text) text("%48", "%49", "%50", "%51", "%52", "%53", "%54")
#define LATHE_PLACES_128(text) text("%64", "%65", "%66", "%67", "%68", "%69", "%70")
#define LATHE_PLACES_136(text) text("%68", "%69", "%70", "%71", "%72", "%73", "%74")
#define LATHE_PLACES_160(text) text("%80", "%81", "%82", "%83", "%84", "%85", "%86")
#define LATHE_PLACES_176(text) text("%88", "%89", "%90", "%91", "%92", "%93", "%94")
#define LATHE_PLACES_192(text) text("%96", "%97", "%98", "%99", "%100", "%101", "%102")
#define LATHE_PLACES_256(text) text("%128", "%129", "%130", "%131", "%132", "%133", "%134")
// Both operands in shared memory: two descriptors, whether sums are kept, major orders.
#define LATHE_KEEP_SHARED(P0, P1, P2, P3, P4, P5, P6) P2
#define LATHE_TERMS_SHARED(P0, P1, P2, P3, P4, P5, P6) P0 ", " P1 ", p, 1, 1, " P3 ", " P4
#define LATHE_TERMS_ALONG_K(P0, P1, P2, P3, P4, P5, P6) P0 ", " P1 ", p, 1, 1"
#define LATHE_TERMS_INTEGERS(P0, P1, P2, P3, P4, P5, P6) P0 ", " P1 ", p"
// The first in registers: four of them, a descriptor, whether sums are kept, a major order.
#define LATHE_KEEP_REGISTERS(P0, P1, P2, P3, P4, P5, P6) P5
#define LATHE_TERMS_REGISTERS(P0, P1, P2, P3, P4, P5, P6) "{" P0 ", " P1 ", " P2 ", " P3 "}, " P4 ", p, 1, 1, " P6
#define LATHE_TERMS_REGISTERS_ALONG_K(P0, P1, P2, P3, P4, P5, P6) "{" P0 ", " P1 ", " P2 ", " P3 "}, " P4 ", p, 1, 1"
#define LATHE_WGMMA(n, c, shape, keep, terms, ...) \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " LATHE_PLACES_##n(keep) ", 0;\n"        \
               "wgmma.mma_async.sync.aligned.m64n" #n shape " {" LATHE_REGISTERS_##n "}, " \
               LATHE_PLACES_##n(terms) ";\n}"                                              \
               : LATHE_SUMS_##n(c)                                                         \
               : __VA_ARGS__)
#define LATHE_WGMMA_SIZES(columns) \
  columns(32);                     \
  columns(48);                     \
  columns(64);                     \
  columns(80);                     \
  columns(96);                     \
  columns(128);                    \
  columns(160);                    \
  columns(176);                    \
  columns(192);                    \
  columns(256)

// d += a * b, or without kKeep d = a * b: 64 rows of a, N of b, 32 bytes of K of each; f32 is read as TF32, its last 13
// bits ignored. A thread's sums are those of mma_m16n8k16 for its warp's 16 rows and each 8 columns. Every thread of
// the four warps comes here. Only of 16-bit elements may rows run along M or N; of i8, N is 8, 24 or a multiple of 16.
// Panels are pointers or places.
template <int N, bool kMnMajorA, bool kMnMajorB, int kPanelBytesA, int kPanelBytesB, bool kKeep = true, class Sum,
          class PanelA, class PanelB, class T>
LATHE_DEVICE void wgmma(Sum (&d)[N / 8][4], PanelA panel_a, PanelB panel_b, T) {
  static_assert(is_same<T, f16> || is_same<T, bf16> || (!kMnMajorA && !kMnMajorB), "what the matrix units read");
  static_assert(is_same<Sum, typename MatrixSum<T>::Type>, "what the matrix units sum up in");
  constexpr int kKept = kKeep, kMajorA = kMnMajorA, kMajorB = kMnMajorB;
  const uint64 a = panel_descriptor<kMnMajorA, kPanelBytesA>(panel_a);
  const uint64 b = panel_descriptor<kMnMajorB, kPanelBytesB>(panel_b);
#define LATHE_WGMMA_SHARED(n, shape, terms) \
  LATHE_WGMMA(n, "+f", shape, LATHE_KEEP_SHARED, terms, "l"(a), "l"(b), "n"(kKept), "n"(kMajorA), "n"(kMajorB))
#define LATHE_WGMMA_ALONG_K(n, c, shape, terms) \
  LATHE_WGMMA(n, c, shape, LATHE_KEEP_SHARED, terms, "l"(a), "l"(b), "n"(kKept))
#define LATHE_WGMMA_COLUMNS(n)                                                                                        \
  if constexpr (N == n && is_same<T, f16>) LATHE_WGMMA_SHARED(n, "k16.f32.f16.f16", LATHE_TERMS_SHARED);              \
  if constexpr (N == n && is_same<T, bf16>) LATHE_WGMMA_SHARED(n, "k16.f32.bf16.bf16", LATHE_TERMS_SHARED);           \
  if constexpr (N == n && is_same<T, float>) LATHE_WGMMA_ALONG_K(n, "+f", "k8.f32.tf32.tf32", LATHE_TERMS_ALONG_K);   \
  if constexpr (N == n && is_same<T, f8e4m3>) LATHE_WGMMA_ALONG_K(n, "+f", "k32.f32.e4m3.e4m3", LATHE_TERMS_ALONG_K); \
  if constexpr (N == n && is_same<T, f8e5m2>) LATHE_WGMMA_ALONG_K(n, "+f", "k32.f32.e5m2.e5m2", LATHE_TERMS_ALONG_K); \
  if constexpr (N == n && is_same<T, int8>) LATHE_WGMMA_ALONG_K(n, "+r", "k32.s32.s8.s8", LATHE_TERMS_INTEGERS)
  LATHE_WGMMA_SIZES(LATHE_WGMMA_COLUMNS);
#undef LATHE_WGMMA_COLUMNS
#undef LATHE_WGMMA_ALONG_K
#undef LATHE_WGMMA_SHARED
}

// d += a * b, or without kKeep d = a * b, with the 64 rows of a in registers: of each warp 16, as mma_m16n8k16 has
// them, or of 8-bit floats mma_m16n8k32. They must stay what they are until the product has been waited for.
template <int N, bool kMnMajorB, int kPanelBytesB, bool kKeep = true, class PanelB, class T>
LATHE_DEVICE void wgmma_registers(float (&d)[N / 8][4], const unsigned (&a)[4], PanelB panel_b, T) {
  static_assert(is_same<T, f16> || is_same<T, bf16> || (is_same<T, f8e4m3> && !kMnMajorB),
                "what the matrix units read");
  constexpr int kKept = kKeep, kMajorB = kMnMajorB;
  const uint64 b = panel_descriptor<kMnMajorB, kPanelBytesB>(panel_b);
#define LATHE_WGMMA_LEFT(n, shape)                                                                                     \
  LATHE_WGMMA(n, "+f", shape, LATHE_KEEP_REGISTERS, LATHE_TERMS_REGISTERS, "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), \
              "l"(b), "n"(kKept), "n"(kMajorB))
#define LATHE_WGMMA_COLUMNS(n)                                                     \
  if constexpr (N == n && is_same<T, f16>) LATHE_WGMMA_LEFT(n, "k16.f32.f16.f16"); \
  if constexpr (N == n && is_same<T, bf16>) LATHE_WGMMA_LEFT(n, "k16.f32.bf16.bf16")
#define LATHE_WGMMA_FLOAT8(n)                                                                                          \
  if constexpr (N == n && is_same<T, f8e4m3>)                                                                          \
  LATHE_WGMMA(n, "+f", "k32.f32.e4m3.e4m3", LATHE_KEEP_REGISTERS, LATHE_TERMS_REGISTERS_ALONG_K, "r"(a[0]), "r"(a[1]), \
              "r"(a[2]), "r"(a[3]), "l"(b), "n"(kKept))
  LATHE_WGMMA_SIZES(LATHE_WGMMA_COLUMNS);
  LATHE_WGMMA_FLOAT8(72);
  LATHE_WGMMA_FLOAT8(136);
#undef LATHE_WGMMA_FLOAT8
#undef LATHE_WGMMA_COLUMNS
#undef LATHE_WGMMA_LEFT
}

// Sums are read, or written, by no code from before this.
template <int N>
LATHE_DEVICE void pin_sums(float (&d)[N][4]) {
  LATHE_UNROLL
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])::"memory");
}

#undef LATHE_WGMMA
#undef LATHE_WGMMA_SIZES
#undef LATHE_KEEP_SHARED
#undef LATHE_TERMS_SHARED
#undef LATHE_TERMS_ALONG_K
#undef LATHE_TERMS_INTEGERS
#undef LATHE_KEEP_REGISTERS
#undef LATHE_TERMS_REGISTERS
#undef LATHE_TERMS_REGISTERS_ALONG_K
#undef LATHE_REGISTERS_32
#undef LATHE_REGISTERS_48
#undef LATHE_REGISTERS_64
#undef LATHE_REGISTERS_72
#undef LATHE_REGISTERS_80
#undef LATHE_REGISTERS_96
#undef LATHE_REGISTERS_128
#undef LATHE_REGISTERS_136
#undef LATHE_REGISTERS_160
#undef LATHE_REGISTERS_176
#undef LATHE_REGISTERS_192
#undef LATHE_REGISTERS_256
#undef LATHE_PLACES_32
#undef LATHE_PLACES_48
#undef LATHE_PLACES_64
#undef LATHE_PLACES_72
#undef LATHE_PLACES_80
#undef LATHE_PLACES_96
#undef LATHE_PLACES_128
#undef LATHE_PLACES_136
#undef LATHE_PLACES_160
#undef LATHE_PLACES_176
#undef LATHE_PLACES_192
#undef LATHE_PLACES_256
#undef LATHE_SUMS_32
#undef LATHE_SUMS_48
#undef LATHE_SUMS_64
#undef LATHE_SUMS_72
#undef LATHE_SUMS_80
#undef LATHE_SUMS_96
#undef LATHE_SUMS_128
#undef LATHE_SUMS_136
#undef LATHE_SUMS_160
#undef LATHE_SUMS_176
#undef LATHE_SUMS_192
#undef LATHE_SUMS_256
#undef LATHE_SUM

// Of the four warps that come here together: their registers that are free for others, and registers that others freed.
template <int kRegisters>
LATHE_DEVICE void free_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
LATHE_DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

#else  // tactics do not choose them for other architectures

LATHE_DEVICE void wgmma_fence() {}
LATHE_DEVICE void wgmma_commit() {}
template <int kPending>
LATHE_DEVICE void wgmma_wait() {}
template <int N, bool kMnMajorA, bool kMnMajorB, int kPanelBytesA, int kPanelBytesB, bool kKeep = true, class Sum,
          class PanelA, class PanelB, class T>
LATHE_DEVICE void wgmma(Sum (&)[N / 8][4], PanelA, PanelB, T) {
  asm volatile("trap;");
}
template <int N, bool kMnMajorB, int kPanelBytesB, bool kKeep = true, class PanelB, class T>
LATHE_DEVICE void wgmma_registers(float (&)[N / 8][4], const unsigned (&)[4], PanelB, T) {
  asm volatile("trap;");
}
template <int N>
LATHE_DEVICE void pin_sums(float (&)[N][4]) {}
template <int kRegisters>
LATHE_DEVICE void free_registers() {}
template <int kRegisters>
LATHE_DEVICE void take_registers() {}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL
#endif  // LATHE_EMULATED

// The same of rows that run along K.
template <int N, bool kKeep = true, class Sum, class T>
LATHE_DEVICE void wgmma_along_k(Sum (&d)[N / 8][4], const void* panel_a, const void* panel_b, T type) {
  constexpr bool kMnMajor = false;
  wgmma<N, kMnMajor, kMnMajor, 0, 0, kKeep>(d, panel_a, panel_b, type);
}
