// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/col2im/col2im.h"
#include "kernels/cpu/simd.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

using col2im::Axis;
using col2im::Taps;
using elementwise::Lane;

template <class T>
LATHE_INLINE void add(const T* __restrict from, int64_t count, T* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}
LATHE_INLINE void add(const float* from, int64_t count, float* to) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, load(to + i) + load(from + i));
  const int rest = static_cast<int>(count - i);
  if (rest > 0) store_tail(to + i, rest, load_tail(to + i, rest) + load_tail(from + i, rest));
}

template <class T>
void add_all(T* totals, const Axis& axis, const Taps& taps) {
  const T* from = static_cast<const T*>(taps.from);
  int64_t first = taps.first, phase = taps.phase;
  for (int64_t k = 0; k < taps.count; ++k, from += taps.step) {
    const int64_t room = (phase < axis.full ? axis.length : axis.length - 1) - first;
    const int64_t begin = first < 0 ? -first : 0, end = room < axis.positions ? room : axis.positions;
    if (begin < end) add(from + begin, end - begin, totals + phase * axis.length + first + begin);
    first += axis.jump;
    phase += axis.turn;
    if (phase >= axis.stride) phase -= axis.stride, ++first;
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

void add_taps(Lane lane, void* totals, const Axis& axis, const Taps& taps) {
  with_type(lane, [&](auto zero) { add_all(static_cast<decltype(zero)*>(totals), axis, taps); });
}

void merge_phases(Lane lane, const void* totals, const Axis& axis, void* row) {
  with_type(lane, [&](auto zero) {
    using T = decltype(zero);
    merge(static_cast<const T*>(totals), axis, static_cast<T*>(row));
  });
}

}  // namespace lathe::cpu::LATHE_ISA
