// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/narrow.h"
#include "kernels/cpu/range/range.h"

// Products are rounded before they are added, as everywhere.
#if defined(__clang__)
#pragma clang fp contract(off)
#else
#pragma GCC optimize("fp-contract=off")
#endif

namespace lathe::cpu::LATHE_ISA {
namespace {

template <class T>
void fill(T* to, int64_t step, T first, T each, int64_t begin, int64_t end) {
  if constexpr (std::is_integral_v<T>) {
    const auto start = static_cast<uint64_t>(first), delta = static_cast<uint64_t>(each);
    for (int64_t i = begin; i < end; ++i) to[i * step] = static_cast<T>(start + static_cast<uint64_t>(i) * delta);
  } else {
    const double start = widen(first), delta = widen(each);
    for (int64_t i = begin; i < end; ++i) to[i * step] = narrow<T>(start + static_cast<double>(i) * delta);
  }
}

}  // namespace

void count_up(DType type, const void* start, const void* delta, int64_t begin, int64_t end, void* to, int64_t step) {
  dispatch(type, [&](auto zero) {
    using T = decltype(zero);
    const T first = *static_cast<const T*>(start), each = *static_cast<const T*>(delta);
    if constexpr (!std::is_same_v<T, bool>)
      step == 1 ? fill<T>(static_cast<T*>(to), 1, first, each, begin, end)
                : fill<T>(static_cast<T*>(to), step, first, each, begin, end);
  });
}

}  // namespace lathe::cpu::LATHE_ISA
