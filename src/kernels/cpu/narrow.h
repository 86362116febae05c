// SPDX-License-Identifier: Apache-2.0
// Floats of any type to f64, and back with a single rounding. Only *_simd.cpp files include it (see isa.h).
#pragma once

#include <type_traits>

#include "base/dtype.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

template <class T>
double widen(T value) {
  // Not by BFloat16's conversion: it is inline, so that the linker could keep the copy compiled here, for this ISA
  // level, for code that runs at every level.
  if constexpr (std::is_same_v<T, BFloat16>)
    return static_cast<double>(__builtin_bit_cast(float, static_cast<uint32_t>(value.bits) << 16));
  else if constexpr (std::is_class_v<T>)
    return static_cast<double>(static_cast<float>(value));
  else
    return static_cast<double>(value);
}

// 16-bit floats are made from f32, and rounding twice could differ from rounding once: the step to f32 rounds to odd.
// It truncates, and sets the last bit when it lost anything, so that the second rounding sees no false tie.
template <class T>
T narrow(double value) {
  const float nearest = static_cast<float>(value);
  if constexpr (std::is_class_v<T>) {
    const double back = nearest;
    if (back == value || back != back || back - back != 0) return T(nearest);
    auto bits = __builtin_bit_cast(uint32_t, nearest);
    if ((back < 0 ? -back : back) > (value < 0 ? -value : value)) --bits;
    return T(__builtin_bit_cast(float, bits | 1));
  } else if constexpr (std::is_same_v<T, float>) {
    return nearest;
  } else {
    return value;
  }
}

}  // namespace
}  // namespace lathe::cpu::LATHE_ISA
