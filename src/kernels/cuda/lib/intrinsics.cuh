// SPDX-License-Identifier: Apache-2.0
// The hardware: thread coordinates, shared memory, barriers, warp exchange, matrix units, asynchronous copies, atomics.
// Kernels touch it through these functions only. Blocks are one-dimensional; warp operations need all 32 lanes.
#pragma once

#include "lib/types.cuh"

#ifdef LATHE_EMULATED
#include "emulator.h"
#else
#include "lib/parts.cuh"

// ---- where am I

LATHE_DEVICE int thread_x() { return static_cast<int>(threadIdx.x); }
LATHE_DEVICE int block_x() { return static_cast<int>(blockIdx.x); }
LATHE_DEVICE int block_y() { return static_cast<int>(blockIdx.y); }
LATHE_DEVICE int block_z() { return static_cast<int>(blockIdx.z); }
LATHE_DEVICE int grid_x() { return static_cast<int>(gridDim.x); }
LATHE_DEVICE int grid_y() { return static_cast<int>(gridDim.y); }
LATHE_DEVICE int grid_z() { return static_cast<int>(gridDim.z); }

extern __shared__ __align__(1024) unsigned char lathe_dynamic_shared[];
LATHE_DEVICE unsigned char* dynamic_shared() { return lathe_dynamic_shared; }
LATHE_DEVICE unsigned shared_address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}
// A number that stays in a register: the compiler does not compute it again where it is used.
LATHE_DEVICE unsigned hold(unsigned number) {
  asm volatile("" : "+r"(number));
  return number;
}
LATHE_DEVICE long clock_now() { return clock64(); }

// Blocks of a cluster (sm_90) run at the same time and may read each other's shared memory, as long as its block runs.
// Before that a block is alone.
LATHE_DEVICE int cluster_rank() {
  unsigned rank = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return static_cast<int>(rank);
}
// The same place in the shared memory of another block.
template <class T>
LATHE_DEVICE T* cluster_peer(T* shared, int rank) {
#if __CUDA_ARCH__ >= 900
  unsigned long long address;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(address) : "l"(shared), "r"(rank));
  return reinterpret_cast<T*>(address);
#else
  return shared;
#endif
}

// ---- synchronisation

LATHE_DEVICE void warp_barrier() { __syncwarp(); }
// A barrier of all threads of the cluster, in two halves: what was written before the first is seen after the second.
LATHE_DEVICE void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
LATHE_DEVICE void cluster_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
  __syncthreads();
#endif
}
// A barrier of blocks that run at the same time (device/whole_grid.h), in two halves: what their threads wrote to
// global memory before the first is seen after the second, by load_coherent(). The counter began at 0; count is what it
// is then.
LATHE_DEVICE void blocks_arrive(uint32* counter) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(counter, 1u);
  }
}
LATHE_DEVICE void blocks_wait(uint32* counter, uint32 count) {
  if (threadIdx.x == 0) {
    uint32 seen = 0;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
    } while (seen < count);
  }
  __syncthreads();
}
LATHE_DEVICE float load_coherent(const float* global) {
  float value;
  asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(value) : "l"(global) : "memory");
  return value;
}
LATHE_DEVICE void memory_fence() { __threadfence(); }
// Programmatic dependent launch. The next launch may begin once every block has come here or has ended, to be in place,
// and have read its weights, when this one ends: it waits for this one as this one for those before. Its blocks take
// only the room that is left, and crowd on some multiprocessors where that is little.
LATHE_DEVICE void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
// Waits until the launches before this one are done and their results can be seen.
LATHE_DEVICE void wait_for_results() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// ---- warp exchange

template <class T>
LATHE_DEVICE T shuffle_xor(T value, int lane_mask) {
  return __shfl_xor_sync(0xffffffffu, value, lane_mask);
}
template <class T>
LATHE_DEVICE T shuffle_down(T value, int delta) {
  return __shfl_down_sync(0xffffffffu, value, static_cast<unsigned>(delta));
}
template <class T>
LATHE_DEVICE T shuffle_up(T value, int delta) {
  return __shfl_up_sync(0xffffffffu, value, static_cast<unsigned>(delta));
}
template <class T>
LATHE_DEVICE T shuffle_idx(T value, int lane) {
  return __shfl_sync(0xffffffffu, value, lane);
}
LATHE_DEVICE unsigned ballot(bool predicate) { return __ballot_sync(0xffffffffu, predicate); }
LATHE_DEVICE int count_bits(unsigned mask) { return __popc(mask); }

// (a & mask) | bits, by one instruction: the compiler makes two of it where both are constants.
LATHE_DEVICE unsigned merge_bits(unsigned a, unsigned mask, unsigned bits) {
  unsigned d;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(d) : "r"(a), "r"(mask), "r"(bits));
  return d;
}

// ---- pairs of 16-bit floats in a register: a - b, a * b and a * b + c, each rounded once

LATHE_DEVICE unsigned subtract_pairs(unsigned a, unsigned b, f16) {
  unsigned d;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
LATHE_DEVICE unsigned multiply_pairs(unsigned a, unsigned b, f16) {
  unsigned d;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
LATHE_DEVICE unsigned multiply_add_pairs(unsigned a, unsigned b, unsigned c, f16) {
  unsigned d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
// As b * -1 + a and a * b + -0, which sm_80 has, too.
LATHE_DEVICE unsigned subtract_pairs(unsigned a, unsigned b, bf16) {
  unsigned d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(b), "r"(0xbf80bf80u), "r"(a));
  return d;
}
LATHE_DEVICE unsigned multiply_pairs(unsigned a, unsigned b, bf16) {
  unsigned d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(0x80008000u));
  return d;
}

// ---- matrix units: d += a * b, fragments as PTX states them for mma.sync row.col

#define LATHE_MMA_16816(type)                                               \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type       \
               ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])             \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
LATHE_DEVICE void mma_m16n8k8(float (&d)[4], const unsigned (&a)[2], const unsigned (&b)[1], f16) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}
LATHE_DEVICE void mma_m16n8k16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], f16) {
#if __CUDA_ARCH__ < 800
  // What sm_75 has: 8 of K at once. Registers alternate between rows, then go on along K.
  mma_m16n8k8(d, {a[0], a[1]}, {b[0]}, f16{});
  mma_m16n8k8(d, {a[2], a[3]}, {b[1]}, f16{});
#else
  LATHE_MMA_16816("f16");
#endif
}
LATHE_DEVICE void mma_m16n8k16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], bf16) {
  LATHE_MMA_16816("bf16");
}
#undef LATHE_MMA_16816
LATHE_DEVICE void mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#if __CUDA_ARCH__ < 800
// What sm_75 has: 8 rows by 16 of K.
LATHE_DEVICE void mma_m8n8k16_s8(int& d0, int& d1, unsigned a, unsigned b) {
  asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
               : "+r"(d0), "+r"(d1)
               : "r"(a), "r"(b));
}
#endif
LATHE_DEVICE void mma_m16n8k32_s8(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#if __CUDA_ARCH__ < 800
  mma_m8n8k16_s8(d[0], d[1], a[0], b[0]);
  mma_m8n8k16_s8(d[2], d[3], a[1], b[0]);
  mma_m8n8k16_s8(d[0], d[1], a[2], b[1]);
  mma_m8n8k16_s8(d[2], d[3], a[3], b[1]);
#else
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

#if __CUDA_ARCH__ >= 890
#define LATHE_MMA_FLOAT8(type)                                              \
  asm volatile("mma.sync.aligned.m16n8k32.row.col.f32." type "." type       \
               ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])             \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#else  // tactics do not choose them
#define LATHE_MMA_FLOAT8(type) asm volatile("trap;")
#endif
LATHE_DEVICE void mma_m16n8k32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], f8e4m3) {
  LATHE_MMA_FLOAT8("e4m3");
}
LATHE_DEVICE void mma_m16n8k32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], f8e5m2) {
  LATHE_MMA_FLOAT8("e5m2");
}
#undef LATHE_MMA_FLOAT8

// The same of sparse rows of a, of which two of four neighbours along K are there: twice the K. 4 bits of e say which
// two, the first in the lower 2; they differ, and ascend. Of 16-bit floats lanes 4 * i and 4 * i + 1 have those of rows
// i and, in the upper half, i + 8, each of 16 elements of K; lanes 2 and 3 of the four are not asked (sparsity selector
// 0). Of 8-bit integers each lane has those of one row and 32 elements: rows alternate between i and i + 8.
#if __CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 5)
#define LATHE_MMA_SP "mma.sp::ordered_metadata.sync.aligned."
#else
#define LATHE_MMA_SP "mma.sp.sync.aligned."
#endif
#define LATHE_SPARSE_MMA(shape, constraint)                                                                  \
  asm volatile(LATHE_MMA_SP shape " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;" \
               : constraint(d[0]), constraint(d[1]), constraint(d[2]), constraint(d[3])                      \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(e))
LATHE_DEVICE void mma_sparse(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[4], unsigned e, f16) {
  LATHE_SPARSE_MMA("m16n8k32.row.col.f32.f16.f16.f32", "+f");
}
LATHE_DEVICE void mma_sparse(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[4], unsigned e, bf16) {
  LATHE_SPARSE_MMA("m16n8k32.row.col.f32.bf16.bf16.f32", "+f");
}
LATHE_DEVICE void mma_sparse(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[4], unsigned e, int8) {
  LATHE_SPARSE_MMA("m16n8k64.row.col.s32.s8.s8.s32", "+r");
}
#undef LATHE_SPARSE_MMA
#undef LATHE_MMA_SP

// 8x8 matrices of 16-bit elements from shared memory; lane 8*i+j gives the address of row j of matrix i.
#define LATHE_LDMATRIX_X4(modifier)                                                        \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4" modifier ".shared.b16 {%0,%1,%2,%3}, [%4];" \
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])                            \
               : "r"(shared_address(row))                                                  \
               : "memory")
#define LATHE_LDMATRIX_X2(modifier)                                                  \
  asm volatile("ldmatrix.sync.aligned.m8n8.x2" modifier ".shared.b16 {%0,%1}, [%2];" \
               : "=r"(r[0]), "=r"(r[1])                                              \
               : "r"(shared_address(row))                                            \
               : "memory")
LATHE_DEVICE void ldmatrix_x4(unsigned (&r)[4], const void* row) { LATHE_LDMATRIX_X4(""); }
LATHE_DEVICE void ldmatrix_x4_trans(unsigned (&r)[4], const void* row) { LATHE_LDMATRIX_X4(".trans"); }
LATHE_DEVICE void ldmatrix_x2(unsigned (&r)[2], const void* row) { LATHE_LDMATRIX_X2(""); }
LATHE_DEVICE void ldmatrix_x2_trans(unsigned (&r)[2], const void* row) { LATHE_LDMATRIX_X2(".trans"); }
#undef LATHE_LDMATRIX_X4
#undef LATHE_LDMATRIX_X2

// Four of the bytes of a, which are 0 to 3, and b: digits of the selector number them, the lowest for the lowest byte.
template <unsigned kSelector>
LATHE_DEVICE unsigned permute_bytes(unsigned a, unsigned b) {
  unsigned result;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "n"(kSelector));
  return result;
}

// ---- asynchronous copies from global to shared memory (sm_80; before that they are plain copies). bytes_valid bytes
// are read, the rest is filled with zeros. Both addresses are aligned to the size.

LATHE_DEVICE void copy_async16(void* shared, const void* global, int bytes_valid) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global),
               "r"(bytes_valid)
               : "memory");
#else
  Vec<uint8, 16> value{};
  if (bytes_valid == 16)
    value = *static_cast<const Vec<uint8, 16>*>(global);
  else
    for (int i = 0; i < bytes_valid; ++i) value.at[i] = static_cast<const uint8*>(global)[i];
  *static_cast<Vec<uint8, 16>*>(shared) = value;
#endif
}
template <int kBytes>
LATHE_DEVICE void copy_async_small(void* shared, const void* global, int bytes_valid) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(shared)), "l"(global), "n"(kBytes),
               "r"(bytes_valid)
               : "memory");
#else
  Vec<uint8, kBytes> value{};
  if (bytes_valid == kBytes)
    value = *static_cast<const Vec<uint8, kBytes>*>(global);
  else
    for (int i = 0; i < bytes_valid; ++i) value.at[i] = static_cast<const uint8*>(global)[i];
  *static_cast<Vec<uint8, kBytes>*>(shared) = value;
#endif
}
// Through the multiprocessor's own cache, for what its other blocks read, too.
LATHE_DEVICE void copy_async16_cached(void* shared, const void* global, int bytes_valid) {
  copy_async_small<16>(shared, global, bytes_valid);
}
LATHE_DEVICE void copy_async8(void* shared, const void* global, int bytes_valid) {
  copy_async_small<8>(shared, global, bytes_valid);
}
LATHE_DEVICE void copy_async4(void* shared, const void* global, int bytes_valid) {
  copy_async_small<4>(shared, global, bytes_valid);
}
LATHE_DEVICE void copy_async_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int kPending>
LATHE_DEVICE void copy_async_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

// ---- atomics on global or shared memory; the value before

template <class T>
LATHE_DEVICE T atomic_add(T* address, T value) {
  return atomicAdd(address, value);
}
template <class T>
LATHE_DEVICE T atomic_cas(T* address, T expected, T desired) {
  return atomicCAS(address, expected, desired);
}
template <class T>
LATHE_DEVICE T atomic_max(T* address, T value) {
  return atomicMax(address, value);
}

// ---- loads with a hint: read once (streaming), or through the read-only path

template <class T, int N>
LATHE_DEVICE Vec<T, N> load_streaming(const Vec<T, N>* global) {
  if constexpr (sizeof(Vec<T, N>) == 16) {
    uint32 r[4];
    asm volatile("ld.global.L1::no_allocate.v4.b32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "l"(global));
    return bit_cast<Vec<T, N> >(r);
  } else {
    return *global;
  }
}

// Brings a multiple of 16 bytes, from a multiple of 16 on, to the last cache; one thread asks for all of them. Before
// sm_90 nothing does.
LATHE_DEVICE void prefetch_to_cache(const void* global, int bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes) : "memory");
#endif
}

// Brings the line of an address to the last cache.
LATHE_DEVICE void prefetch_line(const void* global) { asm volatile("prefetch.global.L2 [%0];" ::"l"(global)); }

#endif  // LATHE_EMULATED

LATHE_DEVICE int lane() { return thread_x() & 31; }
LATHE_DEVICE int warp() { return thread_x() >> 5; }

// So few that what comes next finds multiprocessors of its own beside them: an H200 has 132.
inline constexpr long kFewBlocks = 64;
LATHE_DEVICE bool has_few_blocks() { return static_cast<long>(grid_x()) * grid_y() * grid_z() <= kFewBlocks; }

// What a kernel calls before it reads or writes a tensor, unless it says by itself when the next may begin: one of few
// blocks at once, so that weights behind a chain of short ones come while those run; others when they run themselves.
LATHE_DEVICE void dependency_wait() {
  if (has_few_blocks()) let_next_begin();
  wait_for_results();
  if (!has_few_blocks()) let_next_begin();
}
