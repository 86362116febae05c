// SPDX-License-Identifier: Apache-2.0
// The functions of the formulas in base/scalars.def on vectors, for *_simd.cpp files. Numbers of formulas are floats,
// which become vectors where they are arguments.
#pragma once

#include "kernels/cpu/simd_math.h"

namespace lathe::cpu::LATHE_ISA::math {

using LATHE_ISA::abs;
using LATHE_ISA::ceil;
using LATHE_ISA::cos;
using LATHE_ISA::erf;
using LATHE_ISA::exp;
using LATHE_ISA::expm1;
using LATHE_ISA::floor;
using LATHE_ISA::gelu_erf;
using LATHE_ISA::log;
using LATHE_ISA::mish;
using LATHE_ISA::pow;
using LATHE_ISA::sigmoid;
using LATHE_ISA::silu;
using LATHE_ISA::sin;
using LATHE_ISA::softplus;
using LATHE_ISA::sqrt;
using LATHE_ISA::tanh;

LATHE_INLINE Vec vector(Vec v) { return v; }
LATHE_INLINE Vec vector(float v) { return broadcast(v); }

template <class Yes, class No>
LATHE_INLINE Vec select(IntVec mask, Yes yes, No no) {
  return LATHE_ISA::select(mask, vector(yes), vector(no));
}
LATHE_INLINE Vec truth(IntVec mask) { return select(mask, 1.0f, 0.0f); }
LATHE_INLINE Vec max(Vec a, Vec b) { return max_nan(a, b); }
LATHE_INLINE Vec min(Vec a, Vec b) { return min_nan(a, b); }
template <class Low>
LATHE_INLINE Vec at_least(Vec a, Low low) {
  return max_or_second(vector(low), a);
}
template <class High>
LATHE_INLINE Vec at_most(Vec a, High high) {
  return min_or_second(vector(high), a);
}
LATHE_INLINE Vec fma(Vec a, Vec b, Vec c) { return a * b + c; }
LATHE_INLINE Vec round(Vec a) { return round_even(a); }
// The multiple of a power of two that is nearest to a, half to even: of `share` of the largest power of two in |a|, and
// at least of `least`.
LATHE_INLINE Vec nearest_multiple(Vec a, float share, float least) {
  const Vec unit = max_or_second(as_float(as_int(a) & 0x7f800000) * share, broadcast(least));
  return round_even(a / unit) * unit;
}

}  // namespace lathe::cpu::LATHE_ISA::math
