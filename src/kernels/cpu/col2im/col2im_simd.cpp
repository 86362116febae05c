// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/col2im/col2im.h"

#include <cstring>

#include "kernels/cpu/simd.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

using col2im::Axis;
using col2im::Run;
using elementwise::Lane;

// Lanes [begin, end); the others load as 0 and are not touched in memory.
LATHE_INLINE Vec load_lanes(const float* p, int begin, int end) {
#if defined(LATHE_ISA_LEVEL_avx512)
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << end) - (1u << begin)), p);
#elif defined(LATHE_ISA_LEVEL_avx2)
  return _mm256_maskload_ps(p, reinterpret_cast<__m256i>((iota() >= begin) & (iota() < end)));
#else
  Vec v{};
  for (int i = 0; i < kLanes; ++i)
    if (i >= begin && i < end) v[i] = p[i];
  return v;
#endif
}

template <class T>
void sum(T* totals, int64_t count, const Run* runs, int64_t run_count, bool continued) {
  if (!continued) std::memset(totals, 0, static_cast<size_t>(count) * sizeof(T));
  for (const Run* run = runs; run < runs + run_count; ++run) {
    const T* __restrict from = static_cast<const T*>(run->from);
    T* __restrict to = totals + run->to;
    for (int64_t i = 0; i < run->count; ++i) to[i] += from[i];
  }
}
// Totals stay in a register until all runs are added: what is stored unaligned and read at once makes processors wait.
void sum(float* totals, int64_t count, const Run* runs, int64_t run_count, bool continued) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const int rest = static_cast<int>(count - i < kLanes ? count - i : kLanes);
    Vec total = continued ? load_tail(totals + i, rest) : zero();
    for (const Run* run = runs; run < runs + run_count; ++run) {
      const int64_t at = i - run->to, behind = run->count - at;
      const float* from = static_cast<const float*>(run->from) + at;
      if (at >= 0 && behind >= kLanes)
        total += load(from);
      else if (at > -kLanes && behind > 0)
        total +=
            load_lanes(from, at < 0 ? static_cast<int>(-at) : 0, behind < kLanes ? static_cast<int>(behind) : kLanes);
    }
    store_tail(totals + i, rest, total);
  }
}

template <class T>
void merge(const T* __restrict totals, const Axis& axis, T* __restrict row) {
  if (axis.stride == 2) {
    const T* __restrict odd = totals + axis.length;
    for (int64_t i = 0; i < axis.extent / 2; ++i) {
      row[2 * i] = totals[i];
      row[2 * i + 1] = odd[i];
    }
    if (axis.extent % 2) row[axis.extent - 1] = totals[axis.length - 1];
    return;
  }
  for (int64_t p = 0; p < axis.stride && p < axis.extent; ++p)
    for (int64_t i = 0; p + i * axis.stride < axis.extent; ++i) row[p + i * axis.stride] = totals[p * axis.length + i];
}

// Integers wrap, as unsigned ones do.
template <class F>
void with_type(Lane lane, F&& f) {
  if (lane == Lane::f32) return f(float{});
  if (lane == Lane::f64) return f(double{});
  f(uint64_t{});
}

}  // namespace

void sum_runs(Lane lane, void* totals, int64_t count, const Run* runs, int64_t run_count, bool continued) {
  with_type(lane, [&](auto zero) { sum(static_cast<decltype(zero)*>(totals), count, runs, run_count, continued); });
}

void merge_phases(Lane lane, const void* totals, const Axis& axis, void* row) {
  with_type(lane, [&](auto zero) {
    using T = decltype(zero);
    merge(static_cast<const T*>(totals), axis, static_cast<T*>(row));
  });
}

}  // namespace lathe::cpu::LATHE_ISA
