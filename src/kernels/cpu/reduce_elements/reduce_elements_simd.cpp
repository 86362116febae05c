// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <type_traits>

#include "kernels/cpu/reduce_elements/reduce_elements.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

using elementwise::Lane;
using reduce_elements::Number;

// Integers wrap.
template <class L>
L add(L a, L b) {
  if constexpr (std::is_floating_point_v<L>) return a + b;
  return static_cast<L>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <class L>
L multiply(L a, L b) {
  if constexpr (std::is_floating_point_v<L>) return a * b;
  return static_cast<L>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
template <class L>
L magnitude(L a) {
  if constexpr (std::is_floating_point_v<L>) return std::fabs(a);
  return a < 0 ? static_cast<L>(-static_cast<uint64_t>(a)) : a;
}

// Calls f(map, combine): a total is combine() of map(x, shift) of all numbers x.
template <class L, class F>
void with_functions(Accumulation kind, F f) {
  switch (kind) {
    case Accumulation::sum:
      return f([](L x, double) { return x; }, add<L>);
    case Accumulation::sum_abs:
      return f([](L x, double) { return magnitude(x); }, add<L>);
    case Accumulation::sum_squares:
      return f([](L x, double) { return multiply(x, x); }, add<L>);
    case Accumulation::sum_exp:
      return f([](L x, double s) { return static_cast<L>(std::exp(static_cast<double>(x) - s)); }, add<L>);
    case Accumulation::maximum:
      return f([](L x, double) { return x; }, [](L a, L b) { return a != a || a > b ? a : b; });  // NaN wins
    case Accumulation::minimum:
      return f([](L x, double) { return x; }, [](L a, L b) { return a != a || a < b ? a : b; });
    case Accumulation::product:
      return f([](L x, double) { return x; }, multiply<L>);
  }
}

template <class F>
void with_lane(Lane lane, F f) {
  if (lane == Lane::i64) return f(&Number::i64);
  if (lane == Lane::u64) return f(&Number::u64);
  f(&Number::f64);
}

}  // namespace

// In several totals, so that an addition need not wait for the one before.
void reduce_row(Accumulation kind, Lane lane, const void* numbers, int64_t count, Number neutral, double shift,
                Number* total) {
  with_lane(lane, [&](auto member) {
    using L = std::remove_reference_t<decltype(total->*member)>;
    const L* x = static_cast<const L*>(numbers);
    with_functions<L>(kind, [&](auto map, auto combine) {
      constexpr int kTotals = 16;
      L totals[kTotals];
      for (L& each : totals) each = neutral.*member;
      int64_t i = 0;
      for (; i + kTotals <= count; i += kTotals)
        for (int t = 0; t < kTotals; ++t) totals[t] = combine(totals[t], map(x[i + t], shift));
      L result = total->*member;
      for (const L each : totals) result = combine(result, each);
      for (; i < count; ++i) result = combine(result, map(x[i], shift));
      total->*member = result;
    });
  });
}

void reduce_columns(Accumulation kind, Lane lane, const void* numbers, int64_t count, const double* shifts,
                    Number* totals) {
  with_lane(lane, [&](auto member) {
    using L = std::remove_reference_t<decltype(totals->*member)>;
    const L* x = static_cast<const L*>(numbers);
    with_functions<L>(kind, [&](auto map, auto combine) {
      for (int64_t i = 0; i < count; ++i)
        totals[i].*member = combine(totals[i].*member, map(x[i], shifts ? shifts[i] : 0));
    });
  });
}

}  // namespace lathe::cpu::LATHE_ISA
