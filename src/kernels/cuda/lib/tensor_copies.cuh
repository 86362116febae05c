// SPDX-License-Identifier: Apache-2.0
// What comes to shared memory by itself (sm_90), blocks of tensors by the copy engine and stores of other blocks, and
// the barriers there that count what has arrived. PTX ISA, sections "mbarrier", "cp.async.bulk.tensor", "im2col mode"
// and "st.async".
#pragma once

#include "lib/intrinsics.cuh"

#ifndef LATHE_EMULATED

// Describes a tensor to the copy engine (device/tensor_map.h); opaque.
struct alignas(64) TensorMap {
  uint64 opaque[16];
};
#define LATHE_TENSOR_MAP const __grid_constant__ TensorMap

// A barrier in shared memory: a pointer to it, or its address there, which is computed once.
struct PhaseBarrier {
  unsigned address;
  LATHE_DEVICE_MEMBER PhaseBarrier(uint64* barrier) : address(shared_address(barrier)) {}
  LATHE_DEVICE_MEMBER explicit PhaseBarrier(unsigned shared) : address(shared) {}
};

#if __CUDA_ARCH__ >= 900

// A phase ends when it was arrived at as often as init says and all bytes are there that
// arrivals announced; phases alternate in parity, from 0 on.
LATHE_DEVICE void phase_barrier_init(PhaseBarrier barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier.address), "r"(arrivals) : "memory");
}
// After the inits: other blocks of the cluster, and the copy engine, see them after the next barrier.
LATHE_DEVICE void phase_barrier_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
LATHE_DEVICE void phase_barrier_arrive(PhaseBarrier barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier.address) : "memory");
}
// At the same place in another block of the cluster.
LATHE_DEVICE void phase_barrier_arrive(PhaseBarrier barrier, int rank) {
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier.address),
      "r"(rank)
      : "memory");
}
// Arrives, and announces bytes that copies will bring.
LATHE_DEVICE void phase_barrier_expect(PhaseBarrier barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier.address), "r"(bytes) : "memory");
}
// Until the phase of that parity has ended; the one before the first has parity 1.
LATHE_DEVICE void phase_barrier_wait(PhaseBarrier barrier, uint32 parity) {
  asm volatile(
      "{\n.reg .pred ended;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n"
      "@ended bra done;\n"
      "bra again;\n"
      "done:\n}" ::"r"(barrier.address),
      "r"(parity)
      : "memory");
}

// Stores to the same place in another block of the cluster, where the bytes arrive at the barrier.
LATHE_DEVICE void store_async(float* shared, const Vec<float, 2>& v, PhaseBarrier barrier, int rank) {
  asm volatile(
      "{\n.reg .b32 to, arrived;\n"
      "mapa.shared::cluster.u32 to, %0, %4;\n"
      "mapa.shared::cluster.u32 arrived, %1, %4;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [to], {%2, %3}, [arrived];\n}" ::"r"(
          shared_address(shared)),
      "r"(barrier.address), "f"(v.at[0]), "f"(v.at[1]), "r"(rank)
      : "memory");
}
LATHE_DEVICE void store_async(float* shared, const Vec<float, 4>& v, PhaseBarrier barrier, int rank) {
  asm volatile(
      "{\n.reg .b32 to, arrived;\n"
      "mapa.shared::cluster.u32 to, %0, %6;\n"
      "mapa.shared::cluster.u32 arrived, %1, %6;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [to], {%2, %3, %4, %5}, [arrived];\n}" ::"r"(
          shared_address(shared)),
      "r"(barrier.address), "f"(v.at[0]), "f"(v.at[1]), "f"(v.at[2]), "f"(v.at[3]), "r"(rank)
      : "memory");
}

// Copies the block of the map's size at the coordinates, innermost first, into rows of 128 bytes, permuted as Panel
// does. What lies outside of the tensor becomes zero. Its bytes arrive at the barrier. The block's place is the same in
// each block of the cluster that `peers`, a bit for each, names, and so is the barrier's; 0 = this block alone.
#define LATHE_COPY_TENSOR(rank, places, ...)                                                                       \
  if (peers == 0)                                                                                                  \
    asm volatile("cp.async.bulk.tensor." rank                                                                      \
                 ".shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {" places "}], [%2];" ::"r"(to), \
                 "l"(map), "r"(arrived), "h"(peers), __VA_ARGS__                                                   \
                 : "memory");                                                                                      \
  else                                                                                                             \
    asm volatile("cp.async.bulk.tensor." rank                                                                      \
                 ".shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {" places     \
                 "}], [%2], %3;" ::"r"(to),                                                                        \
                 "l"(map), "r"(arrived), "h"(peers), __VA_ARGS__                                                   \
                 : "memory")
template <int R>
LATHE_DEVICE void copy_tensor(void* shared, const TensorMap* map, const int (&c)[R], PhaseBarrier barrier,
                              uint16 peers) {
  static_assert(R >= 2 && R <= 5, "ranks of tensor maps");
  const unsigned to = shared_address(shared), arrived = barrier.address;
  if constexpr (R == 2) LATHE_COPY_TENSOR("2d", "%4, %5", "r"(c[0]), "r"(c[1]));
  if constexpr (R == 3) LATHE_COPY_TENSOR("3d", "%4, %5, %6", "r"(c[0]), "r"(c[1]), "r"(c[2]));
  if constexpr (R == 4) LATHE_COPY_TENSOR("4d", "%4, %5, %6, %7", "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
  if constexpr (R == 5)
    LATHE_COPY_TENSOR("5d", "%4, %5, %6, %7, %8", "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(c[4]));
}
#undef LATHE_COPY_TENSOR

// Copies rows of channels at the pixels where windows begin, `column` and `row` further, from the window on that begins
// at the channel, column, row and image (a map with TensorMap::windows). What lies outside of the images becomes zero.
LATHE_DEVICE void copy_windows(void* shared, const TensorMap* map, const int (&c)[4], int column, int row,
                               PhaseBarrier barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(shared_address(shared)),
      "l"(map), "r"(barrier.address), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "h"(static_cast<uint16>(column)),
      "h"(static_cast<uint16>(row))
      : "memory");
}

#else  // tactics do not choose them for other architectures

LATHE_DEVICE void phase_barrier_init(PhaseBarrier, int) {}
LATHE_DEVICE void phase_barrier_fence() {}
LATHE_DEVICE void phase_barrier_arrive(PhaseBarrier) {}
LATHE_DEVICE void phase_barrier_arrive(PhaseBarrier, int) {}
LATHE_DEVICE void phase_barrier_expect(PhaseBarrier, int) {}
LATHE_DEVICE void phase_barrier_wait(PhaseBarrier, uint32) {}
template <int N>
LATHE_DEVICE void store_async(float*, const Vec<float, N>&, PhaseBarrier, int) {}
template <int R>
LATHE_DEVICE void copy_tensor(void*, const TensorMap*, const int (&)[R], PhaseBarrier, uint16) {
  asm volatile("trap;");
}
LATHE_DEVICE void copy_windows(void*, const TensorMap*, const int (&)[4], int, int, PhaseBarrier) {
  asm volatile("trap;");
}

#endif  // __CUDA_ARCH__
#endif  // LATHE_EMULATED
