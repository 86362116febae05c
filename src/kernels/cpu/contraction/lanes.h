// SPDX-License-Identifier: Apache-2.0
// What blocks of numbers that are multiplied and summed hold, and what their elements are in memory.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/dtype.h"

namespace lathe::cpu::contraction {

// Integers of up to 32 bits are u32 and those of 64 bits u64, for the lowest bits of sums of products are those of
// wider ones.
inline DType lane_of(DType type) {
  if (type == DType::f32 || type == DType::f64) return type;
  return size_of(type) == 8 ? DType::u64 : DType::u32;
}

template <class F>
void with_lane(DType type, F&& f) {
  switch (lane_of(type)) {
    case DType::f64:
      return f(double{});
    case DType::u32:
      return f(uint32_t{});
    case DType::u64:
      return f(uint64_t{});
    default:
      return f(float{});
  }
}

// Calls f(T{}) with a type whose conversion to the lane keeps the number, and that the lane's lowest bits are.
template <class Lane, class F>
void with_elements(DType type, F&& f) {
  if constexpr (!std::is_same_v<Lane, uint32_t>)
    return f(Lane{});
  else if (size_of(type) == 4)
    return f(uint32_t{});
  else if (size_of(type) == 2)
    return type == DType::i16 ? f(int16_t{}) : f(uint16_t{});
  else
    return type == DType::i8 ? f(int8_t{}) : f(uint8_t{});
}

}  // namespace lathe::cpu::contraction
