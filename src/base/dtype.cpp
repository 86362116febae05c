// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

namespace lathe {
namespace {

struct Row {
  DType type;
  std::string_view name;
  int bits;
  DTypeClass cls;
};

constexpr Row kRows[] = {
#define LATHE_DTYPE(name, number, bits, cls, ...) {DType::name, #name, bits, DTypeClass::cls},
#include "base/dtypes.def"
#undef LATHE_DTYPE
};

// Rows stand in the order of their numbers, which start at 1.
const Row& row_of(DType type) { return kRows[static_cast<int>(type) - 1]; }

}  // namespace

int bits_of(DType type) { return row_of(type).bits; }
size_t size_of(DType type) { return is_packed(type) ? 1 : static_cast<size_t>(bits_of(type)) / 8; }

std::optional<int64_t> bytes_of(DType type, int64_t elements) {
  if (elements < 0) return std::nullopt;
  if (is_packed(type)) {
    const int64_t per_byte = 8 / bits_of(type);
    return elements / per_byte + (elements % per_byte != 0);
  }
  int64_t bytes = 0;
  if (__builtin_mul_overflow(elements, static_cast<int64_t>(size_of(type)), &bytes)) return std::nullopt;
  return bytes;
}

DTypeClass class_of(DType type) { return row_of(type).cls; }
std::string_view name_of(DType type) { return type == DType::boolean ? "bool" : row_of(type).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const Row& row : kRows)
    if (name_of(row.type) == name) return row.type;
  return std::nullopt;
}

std::optional<DType> dtype_from_number(int number) {
  if (number < 1 || number > static_cast<int>(std::size(kRows))) return std::nullopt;
  return kRows[number - 1].type;
}

Half::Half(float value) {
  const uint32_t f = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (f >> 16) & 0x8000u;
  const uint32_t magnitude = f & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) {  // infinity, or NaN with its top payload bits and the quiet bit
    const uint32_t payload = magnitude > 0x7f800000u ? 0x200u | ((magnitude >> 13) & 0x3ffu) : 0u;
    bits = static_cast<uint16_t>(sign | 0x7c00u | payload);
  } else if (magnitude >= 0x477ff000u) {  // rounds past 65504
    bits = static_cast<uint16_t>(sign | 0x7c00u);
  } else if (magnitude < 0x38800000u) {  // subnormal result: let the float adder round at 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + std::bit_cast<float>(0x3f000000u);
    bits = static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  } else {
    const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    bits = static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
  }
}

Half::operator float() const {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -value : value;
  }
  const uint32_t biased = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | (biased << 23) | (mantissa << 13));
}

BFloat16::BFloat16(float value) {
  const uint32_t f = std::bit_cast<uint32_t>(value);
  if ((f & 0x7fffffffu) > 0x7f800000u)
    bits = static_cast<uint16_t>((f >> 16) | 0x40u);
  else
    bits = static_cast<uint16_t>((f + 0x7fffu + ((f >> 16) & 1u)) >> 16);
}

}  // namespace lathe
