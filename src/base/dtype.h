// SPDX-License-Identifier: Apache-2.0
// Element types and the C++ types that hold them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lathe {

enum class DType : uint8_t {
#define LATHE_DTYPE(name, number, bits, cls) name = number,
#include "base/dtypes.def"
#undef LATHE_DTYPE
};

enum class DTypeClass { floating, signed_int, unsigned_int, boolean };

size_t size_of(DType type);  // bytes per element
DTypeClass class_of(DType type);
std::string_view name_of(DType type);                         // "f32"; boolean prints as "bool"
std::optional<DType> dtype_from_name(std::string_view name);  // inverse of name_of
std::optional<DType> dtype_from_number(int number);           // for values read from a file
inline bool is_floating(DType t) { return class_of(t) == DTypeClass::floating; }
inline bool is_integer(DType t) {
  return class_of(t) == DTypeClass::signed_int || class_of(t) == DTypeClass::unsigned_int;
}

// IEEE binary16, round to nearest even.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value);
  explicit operator float() const;
};

// bfloat16, round to nearest even; NaN stays NaN.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value);
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

// Calls f with a value of the C++ type that stores `type`: dispatch(t, [&](auto zero) { using T = decltype(zero); ...
// }). Each use instantiates f for 13 types: keep f small, or compute in double / int64_t where that is exact.
template <class F>
decltype(auto) dispatch(DType type, F&& f) {
  switch (type) {
    case DType::f64:
      return f(double{});
    case DType::f16:
      return f(Half{});
    case DType::bf16:
      return f(BFloat16{});
    case DType::i8:
      return f(int8_t{});
    case DType::i16:
      return f(int16_t{});
    case DType::i32:
      return f(int32_t{});
    case DType::i64:
      return f(int64_t{});
    case DType::u8:
      return f(uint8_t{});
    case DType::u16:
      return f(uint16_t{});
    case DType::u32:
      return f(uint32_t{});
    case DType::u64:
      return f(uint64_t{});
    case DType::boolean:
      return f(bool{});
    case DType::f32:
      break;
  }
  return f(float{});
}

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<Half>() {
  return DType::f16;
}
template <>
constexpr DType dtype_of<BFloat16>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<int8_t>() {
  return DType::i8;
}
template <>
constexpr DType dtype_of<int16_t>() {
  return DType::i16;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::u8;
}
template <>
constexpr DType dtype_of<uint16_t>() {
  return DType::u16;
}
template <>
constexpr DType dtype_of<uint32_t>() {
  return DType::u32;
}
template <>
constexpr DType dtype_of<uint64_t>() {
  return DType::u64;
}
template <>
constexpr DType dtype_of<bool>() {
  return DType::boolean;
}

}  // namespace lathe
