// SPDX-License-Identifier: Apache-2.0
// lib/intrinsics.cuh on a CPU: the same functions, for device code compiled by the host's compiler with LATHE_EMULATED.
// The emulator library runs the threads of a block as fibers, which take turns at barriers and warp operations.
// Included by lib/intrinsics.cuh, after lib/types.cuh.
#pragma once

extern "C" {

struct lathe_emulated_thread {
  int thread, block_threads;
  int block[3], grid[3];
  int cluster_rank;
  unsigned char* shared;
};

const lathe_emulated_thread* lathe_emulated_self();
void lathe_emulated_barrier();
void lathe_emulated_begin_part(int threads);
void lathe_emulated_part_barrier();
void lathe_emulated_cluster_arrive();
void lathe_emulated_cluster_wait();
void lathe_emulated_fail(const char* message);
void* lathe_emulated_peer(const void* shared, int rank);
// Waits until all 32 lanes gave a value (64 bytes at most) to the operation `what`; lane i's is at result + 64 * i.
const unsigned char* lathe_emulated_collect(const char* what, const void* value, unsigned bytes);
void lathe_emulated_mma(const char* shape, void* d, const unsigned* a, const unsigned* b);
// With sparsity selector 0: of 16-bit elements, the first two lanes of each four say where a's lie.
void lathe_emulated_sparse_mma(const char* shape, void* d, const unsigned* a, const unsigned* b, unsigned e);
struct lathe_emulated_panel {
  const void* start;
  int mn_major, panel_bytes;  // as panel_descriptor() has them
};
// Sums are added to where `keep` says so. `registers`, four, stand for the panel a where that has no start.
void lathe_emulated_wgmma(const char* type, int columns, bool keep, void* d, const unsigned* registers,
                          lathe_emulated_panel a, lathe_emulated_panel b);
void lathe_emulated_wgmma_commit();
void lathe_emulated_wgmma_wait(int pending);
void lathe_emulated_matrix_units_fence();
void lathe_emulated_ldmatrix(unsigned* r, int count, bool transposed, const void* row);
void lathe_emulated_copy_async(void* shared, const void* global, int bytes, int bytes_valid);
void lathe_emulated_copy_async_commit();
void lathe_emulated_copy_async_wait(int pending);
void lathe_emulated_phase_barrier_init(void* barrier, int arrivals);
void lathe_emulated_phase_barrier_arrive(void* barrier, int rank);  // -1: of this block
void lathe_emulated_phase_barrier_expect(void* barrier, int bytes);
void lathe_emulated_phase_barrier_wait(void* barrier, unsigned parity);
void lathe_emulated_store_async(void* shared, const void* value, int bytes, void* barrier, int rank);
void lathe_emulated_copy_tensor(void* shared, const void* map, int rank, const int* at, void* barrier, unsigned peers);
void lathe_emulated_dependency_wait();
long lathe_emulated_clock();

}  // extern "C"

LATHE_DEVICE int thread_x() { return lathe_emulated_self()->thread; }
LATHE_DEVICE int block_threads() { return lathe_emulated_self()->block_threads; }
LATHE_DEVICE int block_x() { return lathe_emulated_self()->block[0]; }
LATHE_DEVICE int block_y() { return lathe_emulated_self()->block[1]; }
LATHE_DEVICE int block_z() { return lathe_emulated_self()->block[2]; }
LATHE_DEVICE int grid_x() { return lathe_emulated_self()->grid[0]; }
LATHE_DEVICE int grid_y() { return lathe_emulated_self()->grid[1]; }
LATHE_DEVICE int grid_z() { return lathe_emulated_self()->grid[2]; }
LATHE_DEVICE int cluster_rank() { return lathe_emulated_self()->cluster_rank; }
LATHE_DEVICE unsigned char* dynamic_shared() { return lathe_emulated_self()->shared; }
LATHE_DEVICE unsigned shared_address(const void* shared) {
  return static_cast<unsigned>(static_cast<const unsigned char*>(shared) - dynamic_shared());
}
LATHE_DEVICE unsigned hold(unsigned number) { return number; }
LATHE_DEVICE long clock_now() { return lathe_emulated_clock(); }

#ifdef LATHE_PARTS_IN_TURN
LATHE_DEVICE void begin_part(int threads) { lathe_emulated_begin_part(threads); }
LATHE_DEVICE void barrier() { lathe_emulated_part_barrier(); }
LATHE_DEVICE void barrier_of_parts() { lathe_emulated_barrier(); }
#else
LATHE_DEVICE void barrier() { lathe_emulated_barrier(); }
#endif
LATHE_DEVICE void cluster_arrive() { lathe_emulated_cluster_arrive(); }
LATHE_DEVICE void cluster_wait() { lathe_emulated_cluster_wait(); }
template <class T>
LATHE_DEVICE T* cluster_peer(T* shared, int rank) {
  return static_cast<T*>(lathe_emulated_peer(shared, rank));
}
// Blocks of a launch that runs at once, along x, run as a cluster does.
LATHE_DEVICE void blocks_arrive(uint32* counter) {
  barrier();
  if (thread_x() == 0) ++*counter;
  cluster_arrive();
}
LATHE_DEVICE void blocks_wait(uint32* counter, uint32 count) {
  cluster_wait();
  if (*counter < count || *counter > count + static_cast<uint32>(grid_x()))
    lathe_emulated_fail("the counter of blocks that wait for each other did not begin at 0");
}
LATHE_DEVICE float load_coherent(const float* global) { return *global; }
LATHE_DEVICE void warp_barrier() { lathe_emulated_collect("warp_barrier", nullptr, 0); }
LATHE_DEVICE void memory_fence() {}
LATHE_DEVICE void let_next_begin() {}
LATHE_DEVICE void wait_for_results() { lathe_emulated_dependency_wait(); }

// The value that lane `from` gave; lanes outside the warp give one's own.
template <class T>
LATHE_DEVICE T lathe_emulated_shuffle(const char* what, T value, int from) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 4 or 8 bytes");
  const unsigned char* all = lathe_emulated_collect(what, &value, sizeof(T));
  if (from < 0 || from > 31) return value;
  T result;
  memcpy(&result, all + 64 * from, sizeof(T));
  return result;
}
template <class T>
LATHE_DEVICE T shuffle_xor(T value, int lane_mask) {
  return lathe_emulated_shuffle("shuffle_xor", value, (thread_x() & 31) ^ lane_mask);
}
template <class T>
LATHE_DEVICE T shuffle_down(T value, int delta) {
  return lathe_emulated_shuffle("shuffle_down", value, (thread_x() & 31) + delta);
}
template <class T>
LATHE_DEVICE T shuffle_up(T value, int delta) {
  return lathe_emulated_shuffle("shuffle_up", value, (thread_x() & 31) - delta);
}
template <class T>
LATHE_DEVICE T shuffle_idx(T value, int lane) {
  return lathe_emulated_shuffle("shuffle_idx", value, lane & 31);
}
LATHE_DEVICE unsigned ballot(bool predicate) {
  const unsigned char* all = lathe_emulated_collect("ballot", &predicate, 1);
  unsigned mask = 0;
  for (int i = 0; i < 32; ++i) mask |= static_cast<unsigned>(all[64 * i]) << i;
  return mask;
}
LATHE_DEVICE int count_bits(unsigned mask) { return __builtin_popcount(mask); }

LATHE_DEVICE unsigned merge_bits(unsigned a, unsigned mask, unsigned bits) { return (a & mask) | bits; }

template <class T, class F>
LATHE_DEVICE unsigned lathe_emulated_pairs(unsigned a, unsigned b, F f) {
  const auto one = [&](int shift) {
    const T x{static_cast<uint16>(a >> shift)}, y{static_cast<uint16>(b >> shift)};
    return static_cast<unsigned>(from_float<T>(f(to_float(x), to_float(y))).bits) << shift;
  };
  return one(0) | one(16);
}
template <class T>
LATHE_DEVICE unsigned subtract_pairs(unsigned a, unsigned b, T) {
  return lathe_emulated_pairs<T>(a, b, [](float x, float y) { return x - y; });
}
template <class T>
LATHE_DEVICE unsigned multiply_pairs(unsigned a, unsigned b, T) {
  return lathe_emulated_pairs<T>(a, b, [](float x, float y) { return x * y; });
}
// The sum is rounded to f32 before it is to f16, which shows where f32 ends halfway between two of these.
LATHE_DEVICE unsigned multiply_add_pairs(unsigned a, unsigned b, unsigned c, f16) {
  const auto one = [&](int shift) {
    const auto of = [&](unsigned pair) { return to_float(f16{static_cast<uint16>(pair >> shift)}); };
    return static_cast<unsigned>(from_float<f16>(fmaf(of(a), of(b), of(c))).bits) << shift;
  };
  return one(0) | one(16);
}

LATHE_DEVICE void mma_m16n8k16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], f16) {
  lathe_emulated_mma("m16n8k16 f16", d, a, b);
}
LATHE_DEVICE void mma_m16n8k16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], bf16) {
  lathe_emulated_mma("m16n8k16 bf16", d, a, b);
}
LATHE_DEVICE void mma_m16n8k8(float (&d)[4], const unsigned (&a)[2], const unsigned (&b)[1], f16) {
  lathe_emulated_mma("m16n8k8 f16", d, a, b);
}
LATHE_DEVICE void mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  lathe_emulated_mma("m16n8k8 tf32", d, a, b);
}
LATHE_DEVICE void mma_m16n8k32_s8(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  lathe_emulated_mma("m16n8k32 s8", d, a, b);
}
LATHE_DEVICE void mma_m16n8k32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], f8e4m3) {
  lathe_emulated_mma("m16n8k32 e4m3", d, a, b);
}
LATHE_DEVICE void mma_m16n8k32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], f8e5m2) {
  lathe_emulated_mma("m16n8k32 e5m2", d, a, b);
}
LATHE_DEVICE void mma_sparse(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[4], unsigned e, f16) {
  lathe_emulated_sparse_mma("sparse m16n8k32 f16", d, a, b, e);
}
LATHE_DEVICE void mma_sparse(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[4], unsigned e, bf16) {
  lathe_emulated_sparse_mma("sparse m16n8k32 bf16", d, a, b, e);
}
LATHE_DEVICE void mma_sparse(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[4], unsigned e, int8) {
  lathe_emulated_sparse_mma("sparse m16n8k64 s8", d, a, b, e);
}
LATHE_DEVICE void matrix_units_fence() { lathe_emulated_matrix_units_fence(); }
LATHE_DEVICE void wgmma_fence() { lathe_emulated_collect("wgmma_fence", nullptr, 0); }
LATHE_DEVICE void wgmma_commit() { lathe_emulated_wgmma_commit(); }
template <int kPending>
LATHE_DEVICE void wgmma_wait() {
  lathe_emulated_wgmma_wait(kPending);
}
template <bool kMnMajor, int kPanelBytes>
struct PanelPlace {
  const unsigned char* at;
  LATHE_DEVICE_MEMBER explicit PanelPlace(unsigned shared) : at(dynamic_shared() + shared) {}
  LATHE_DEVICE_MEMBER PanelPlace operator+(int bytes) const {
    PanelPlace moved = *this;
    moved.at += bytes;
    return moved;
  }
};
template <bool kMnMajor, int kPanelBytes>
LATHE_DEVICE lathe_emulated_panel emulated_panel(const void* at) {
  return {at, kMnMajor, kPanelBytes};
}
template <bool kMnMajor, int kPanelBytes>
LATHE_DEVICE lathe_emulated_panel emulated_panel(PanelPlace<kMnMajor, kPanelBytes> place) {
  return {place.at, kMnMajor, kPanelBytes};
}
template <int N, bool kMnMajorA, bool kMnMajorB, int kPanelBytesA, int kPanelBytesB, bool kKeep = true, class Sum,
          class PanelA, class PanelB, class T>
LATHE_DEVICE void wgmma(Sum (&d)[N / 8][4], PanelA a, PanelB b, T) {
  static_assert(is_same<T, f16> || is_same<T, bf16> || (!kMnMajorA && !kMnMajorB), "what the matrix units read");
  static_assert(is_same<Sum, typename MatrixSum<T>::Type>, "what the matrix units sum up in");
  static_assert(!is_same<T, int8> || N % 16 == 0 || N == 8 || N == 24, "what the instruction takes");
  constexpr const char* kType = is_same<T, f16>      ? "f16"
                                : is_same<T, bf16>   ? "bf16"
                                : is_same<T, int8>   ? "s8"
                                : is_same<T, f8e4m3> ? "e4m3"
                                : is_same<T, f8e5m2> ? "e5m2"
                                                     : "tf32";
  lathe_emulated_wgmma(kType, N, kKeep, d, nullptr, emulated_panel<kMnMajorA, kPanelBytesA>(a),
                       emulated_panel<kMnMajorB, kPanelBytesB>(b));
}
template <int N, bool kMnMajorB, int kPanelBytesB, bool kKeep = true, class PanelB, class T>
LATHE_DEVICE void wgmma_registers(float (&d)[N / 8][4], const unsigned (&a)[4], PanelB b, T) {
  static_assert(!is_float8<T> || !kMnMajorB, "what the matrix units read");
  constexpr const char* kType = is_same<T, f16> ? "f16" : is_same<T, bf16> ? "bf16" : "e4m3";
  lathe_emulated_wgmma(kType, N, kKeep, d, a, {nullptr, 0, 0}, emulated_panel<kMnMajorB, kPanelBytesB>(b));
}
template <int N>
LATHE_DEVICE void pin_sums(float (&)[N][4]) {}
template <int kRegisters>
LATHE_DEVICE void free_registers() {}
template <int kRegisters>
LATHE_DEVICE void take_registers() {}
LATHE_DEVICE void ldmatrix_x4(unsigned (&r)[4], const void* row) { lathe_emulated_ldmatrix(r, 4, false, row); }
LATHE_DEVICE void ldmatrix_x4_trans(unsigned (&r)[4], const void* row) { lathe_emulated_ldmatrix(r, 4, true, row); }
LATHE_DEVICE void ldmatrix_x2(unsigned (&r)[2], const void* row) { lathe_emulated_ldmatrix(r, 2, false, row); }
LATHE_DEVICE void ldmatrix_x2_trans(unsigned (&r)[2], const void* row) { lathe_emulated_ldmatrix(r, 2, true, row); }

template <unsigned kSelector>
LATHE_DEVICE unsigned permute_bytes(unsigned a, unsigned b) {
  const uint64 bytes = static_cast<uint64>(b) << 32 | a;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i)
    result |= static_cast<unsigned>(bytes >> (kSelector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
  return result;
}

LATHE_DEVICE void copy_async16(void* shared, const void* global, int bytes_valid) {
  lathe_emulated_copy_async(shared, global, 16, bytes_valid);
}
LATHE_DEVICE void copy_async16_cached(void* shared, const void* global, int bytes_valid) {
  copy_async16(shared, global, bytes_valid);
}
LATHE_DEVICE void copy_async8(void* shared, const void* global, int bytes_valid) {
  lathe_emulated_copy_async(shared, global, 8, bytes_valid);
}
LATHE_DEVICE void copy_async4(void* shared, const void* global, int bytes_valid) {
  lathe_emulated_copy_async(shared, global, 4, bytes_valid);
}
LATHE_DEVICE void copy_async_commit() { lathe_emulated_copy_async_commit(); }
template <int kPending>
LATHE_DEVICE void copy_async_wait() {
  lathe_emulated_copy_async_wait(kPending);
}

struct alignas(64) TensorMap {
  uint64 opaque[16];
};
#define LATHE_TENSOR_MAP const TensorMap&
struct PhaseBarrier {
  void* at;
  LATHE_DEVICE_MEMBER PhaseBarrier(uint64* barrier) : at(barrier) {}
  LATHE_DEVICE_MEMBER explicit PhaseBarrier(unsigned shared) : at(dynamic_shared() + shared) {}
};
LATHE_DEVICE void phase_barrier_init(PhaseBarrier barrier, int arrivals) {
  lathe_emulated_phase_barrier_init(barrier.at, arrivals);
}
LATHE_DEVICE void phase_barrier_fence() {}
LATHE_DEVICE void phase_barrier_arrive(PhaseBarrier barrier) { lathe_emulated_phase_barrier_arrive(barrier.at, -1); }
LATHE_DEVICE void phase_barrier_arrive(PhaseBarrier barrier, int rank) {
  lathe_emulated_phase_barrier_arrive(barrier.at, rank);
}
LATHE_DEVICE void phase_barrier_expect(PhaseBarrier barrier, int bytes) {
  lathe_emulated_phase_barrier_expect(barrier.at, bytes);
}
LATHE_DEVICE void phase_barrier_wait(PhaseBarrier barrier, uint32 parity) {
  lathe_emulated_phase_barrier_wait(barrier.at, parity);
}
template <int N>
LATHE_DEVICE void store_async(float* shared, const Vec<float, N>& v, PhaseBarrier barrier, int rank) {
  lathe_emulated_store_async(shared, &v, sizeof v, barrier.at, rank);
}
template <int R>
LATHE_DEVICE void copy_tensor(void* shared, const TensorMap* map, const int (&at)[R], PhaseBarrier barrier,
                              uint16 peers) {
  lathe_emulated_copy_tensor(shared, map, R, at, barrier.at, peers);
}
LATHE_DEVICE void copy_windows(void* shared, const TensorMap* map, const int (&c)[4], int column, int row,
                               PhaseBarrier barrier) {
  const int at[6] = {c[0], c[1], c[2], c[3], column, row};
  lathe_emulated_copy_tensor(shared, map, 6, at, barrier.at, 0);
}

// Fibers of a launch share one host thread.
template <class T>
LATHE_DEVICE T atomic_add(T* address, T value) {
  const T before = *address;
  *address = before + value;
  return before;
}
template <class T>
LATHE_DEVICE T atomic_cas(T* address, T expected, T desired) {
  const T before = *address;
  if (before == expected) *address = desired;
  return before;
}
template <class T>
LATHE_DEVICE T atomic_max(T* address, T value) {
  const T before = *address;
  if (value > before) *address = value;
  return before;
}

template <class T, int N>
LATHE_DEVICE Vec<T, N> load_streaming(const Vec<T, N>* global) {
  return *global;
}
LATHE_DEVICE void prefetch_line(const void*) {}
LATHE_DEVICE void prefetch_to_cache(const void* global, int bytes) {
  if (reinterpret_cast<unsigned long>(global) % 16 != 0 || bytes <= 0 || bytes % 16 != 0)
    lathe_emulated_fail("a prefetch that is not of 16 bytes at multiples of 16");
}
