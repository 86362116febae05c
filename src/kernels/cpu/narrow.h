// SPDX-License-Identifier: Apache-2.0
// Floats of any type as f64, and back by one rounding. For *_simd.cpp files, as simd.h is.
#pragma once

#include <type_traits>

#include "base/dtype.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

template <class T>
double widen(T value) {
  if constexpr (std::is_same_v<T, BFloat16>)  // its inline conversion would be compiled for this level alone
    return static_cast<double>(__builtin_bit_cast(float, static_cast<uint32_t>(value.bits) << 16));
  else if constexpr (std::is_class_v<T>)
    return static_cast<double>(static_cast<float>(value));
  else
    return static_cast<double>(value);
}

// To 16 bits by way of f32, of which the last bit keeps what it loses ("round to odd").
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
