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
#define LATHE_DTYPE(name, number, ...) name = number,
#include "base/dtypes.def"
#undef LATHE_DTYPE
};

enum class DTypeClass { floating, signed_int, unsigned_int, boolean, storage };

int bits_of(DType type);     // per element
size_t size_of(DType type);  // bytes of one element by itself: 1 for those of a few bits, of which a byte holds several
inline bool is_packed(DType type) { return bits_of(type) < 8; }
// Bytes that hold so many elements, the last of them filled up; nullopt below 0 and where it overflows.
std::optional<int64_t> bytes_of(DType type, int64_t elements);
DTypeClass class_of(DType type);
std::string_view name_of(DType type);                         // "f32"; boolean prints as "bool"
std::optional<DType> dtype_from_name(std::string_view name);  // inverse of name_of
std::optional<DType> dtype_from_number(int number);           // for values read from a file
// Types that ops compute with.
inline bool is_floating(DType t) { return class_of(t) == DTypeClass::floating; }
inline bool is_integer(DType t) {
  return class_of(t) == DTypeClass::signed_int || class_of(t) == DTypeClass::unsigned_int;
}

inline bool is_byte_integer(DType t) { return is_integer(t) && bits_of(t) == 8; }
inline bool is_integral(DType t) { return is_integer(t) || class_of(t) == DTypeClass::boolean; }
// A type that tensors are stored in and that nothing is computed with: base/encoding.h converts its elements.
inline bool is_storage_only(DType t) { return class_of(t) == DTypeClass::storage; }
// Of those, the floats that matrix units of some targets multiply.
inline bool is_factor_float8(DType t) { return t == DType::f8e4m3fn || t == DType::f8e5m2; }
// Those that kernels widen as they read weights of them.
inline bool is_weight_float(DType t) { return is_factor_float8(t) || t == DType::f4e2m1; }

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
// Storage types come as the bits of one element, uint8_t.
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
      return f(float{});
    default:
      break;
  }
  return f(uint8_t{});
}

template <class T>
constexpr DType dtype_of();
#define LATHE_DTYPE_OF(T, name)   \
  template <>                     \
  constexpr DType dtype_of<T>() { \
    return DType::name;           \
  }
LATHE_DTYPE_OF(float, f32)
LATHE_DTYPE_OF(double, f64)
LATHE_DTYPE_OF(Half, f16)
LATHE_DTYPE_OF(BFloat16, bf16)
LATHE_DTYPE_OF(int8_t, i8)
LATHE_DTYPE_OF(int16_t, i16)
LATHE_DTYPE_OF(int32_t, i32)
LATHE_DTYPE_OF(int64_t, i64)
LATHE_DTYPE_OF(uint8_t, u8)
LATHE_DTYPE_OF(uint16_t, u16)
LATHE_DTYPE_OF(uint32_t, u32)
LATHE_DTYPE_OF(uint64_t, u64)
LATHE_DTYPE_OF(bool, boolean)
#undef LATHE_DTYPE_OF

}  // namespace lathe
