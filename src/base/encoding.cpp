// SPDX-License-Identifier: Apache-2.0
#include "base/encoding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace lathe {
namespace {

// What the codes with the largest exponents, and the one of -0, stand for.
enum class Specials {
  ieee,           // infinity, and behind it NaN
  nan_only,       // "fn": NaN where all bits but the sign are set
  nan_for_zero,   // "fnuz": NaN where -0 would be
  none,           // numbers throughout
  scale,          // no sign: powers of two, and NaN where all bits are set
  signed_bits,    // no float: an integer in two's complement
  unsigned_bits,  // no float: an integer
};

struct Encoding {
  Specials specials;
  int exponent_bits = 0, mantissa_bits = 0, bias = 0;
  bool is_integer() const { return specials == Specials::signed_bits || specials == Specials::unsigned_bits; }
};

constexpr Encoding none{Specials::none};  // of types that are computed with
constexpr Encoding e4m3fn{Specials::nan_only, 4, 3, 7};
constexpr Encoding e4m3fnuz{Specials::nan_for_zero, 4, 3, 8};
constexpr Encoding e5m2{Specials::ieee, 5, 2, 15};
constexpr Encoding e5m2fnuz{Specials::nan_for_zero, 5, 2, 16};
constexpr Encoding e8m0{Specials::scale, 8, 0, 127};
constexpr Encoding e2m1{Specials::none, 2, 1, 1};
constexpr Encoding signed_bits{Specials::signed_bits};
constexpr Encoding unsigned_bits{Specials::unsigned_bits};

constexpr Encoding kEncodings[] = {
#define LATHE_DTYPE(name, number, bits, cls, encoding, ...) encoding,
#include "base/dtypes.def"
#undef LATHE_DTYPE
};

const Encoding& encoding_of(DType type) { return kEncodings[static_cast<int>(type) - 1]; }

constexpr uint8_t kNanScale = 0xff;

unsigned mask_of(DType type) { return (1u << bits_of(type)) - 1; }

double decode_float(const Encoding& e, DType type, unsigned code) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const unsigned sign_bit = 1u << (bits_of(type) - 1), magnitude = code & (sign_bit - 1);
  const double sign = code & sign_bit ? -1 : 1;
  const int exponent = static_cast<int>(magnitude >> e.mantissa_bits);
  const double fraction = std::ldexp(magnitude & ((1u << e.mantissa_bits) - 1), -e.mantissa_bits);
  if (e.specials == Specials::nan_for_zero && code == sign_bit) return kNan;
  if (e.specials == Specials::nan_only && magnitude == sign_bit - 1) return std::copysign(kNan, sign);
  if (e.specials == Specials::ieee && exponent == (1 << e.exponent_bits) - 1)
    return std::copysign(fraction == 0 ? std::numeric_limits<double>::infinity() : kNan, sign);
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - e.bias) : std::ldexp(1 + fraction, exponent - e.bias));
}

// Codes of magnitudes; the sign is apart.
struct Limits {
  unsigned largest, overflow, nan;
};
Limits limits_of(const Encoding& e, unsigned sign_bit) {
  switch (e.specials) {
    case Specials::ieee: {
      const unsigned infinity = ((1u << e.exponent_bits) - 1) << e.mantissa_bits;
      return {infinity - 1, infinity, infinity | 1u << (e.mantissa_bits - 1)};
    }
    case Specials::nan_only:
      return {sign_bit - 2, sign_bit - 1, sign_bit - 1};
    case Specials::nan_for_zero:
      return {sign_bit - 1, sign_bit, sign_bit};
    default:
      return {sign_bit - 1, sign_bit - 1, 0};
  }
}

unsigned encode_float(const Encoding& e, DType type, double value, bool saturate) {
  const unsigned sign_bit = 1u << (bits_of(type) - 1);
  const Limits limits = limits_of(e, sign_bit);
  const unsigned sign = std::signbit(value) ? sign_bit : 0;
  const bool one_zero = e.specials == Specials::nan_for_zero;
  const auto with_sign = [&](unsigned magnitude) {
    return one_zero && (magnitude == 0 || magnitude == sign_bit) ? magnitude : magnitude | sign;
  };
  if (std::isnan(value)) return with_sign(limits.nan);
  const double magnitude = std::fabs(value), largest = decode_float(e, type, limits.largest);
  const auto beyond = [&] { return with_sign(saturate ? limits.largest : limits.overflow); };
  if (std::isinf(value)) return beyond();
  // Numbers of one exponent are multiples of a power of two, which is the least one's below the normal numbers.
  const int exponent = magnitude == 0 ? 1 - e.bias : std::max(std::ilogb(magnitude), 1 - e.bias);
  const double steps = std::nearbyint(std::ldexp(magnitude, e.mantissa_bits - exponent));
  if (std::ldexp(steps, exponent - e.mantissa_bits) > largest) return beyond();
  // A step more is the next code, also where it leads into the next exponent: codes count up through all numbers.
  return with_sign((static_cast<unsigned>(exponent + e.bias - 1) << e.mantissa_bits) + static_cast<unsigned>(steps));
}

unsigned encode_scale(const Encoding& e, double value, bool saturate) {
  if (std::isnan(value)) return kNanScale;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // in [1/2, 1)
  const int rounded = fraction == 0.5 ? exponent - 1 : exponent;
  constexpr unsigned kLargest = kNanScale - 1;
  if (std::isinf(value) || rounded > static_cast<int>(kLargest) - e.bias) return saturate ? kLargest : kNanScale;
  if (fraction == 0 || rounded < -e.bias) return saturate ? 0 : kNanScale;
  return static_cast<unsigned>(rounded + e.bias);
}

unsigned encode_integer(double value) {
  return value > -0x1p63 && value < 0x1p63 ? static_cast<unsigned>(static_cast<int64_t>(value)) : 0;
}

using Values = std::array<double, 256>;

Values decode_all(DType type) {
  const Encoding& e = encoding_of(type);
  Values values{};
  for (unsigned code = 0; code <= mask_of(type) && code < values.size(); ++code) {
    if (e.specials == Specials::scale)
      values[code] = code == kNanScale ? std::numeric_limits<double>::quiet_NaN()
                                       : std::ldexp(1.0, static_cast<int>(code) - e.bias);
    else if (e.specials == Specials::signed_bits)
      values[code] = static_cast<int>(code) - (code > mask_of(type) / 2 ? static_cast<int>(mask_of(type)) + 1 : 0);
    else if (e.specials == Specials::unsigned_bits)
      values[code] = code;
    else
      values[code] = decode_float(e, type, code);
  }
  return values;
}

const Values& values_of(DType type) {
  static const auto kAll = [] {
    std::array<Values, std::size(kEncodings)> all{};
    for (size_t i = 0; i < all.size(); ++i)
      if (const auto type = static_cast<DType>(i + 1); is_storage_only(type)) all[i] = decode_all(type);
    return all;
  }();
  return kAll[static_cast<size_t>(type) - 1];
}

}  // namespace

double decode(DType type, uint8_t code) { return values_of(type)[code & mask_of(type)]; }

uint8_t encode(DType type, double value, bool saturate) {
  const Encoding& e = encoding_of(type);
  const unsigned code = e.specials == Specials::scale ? encode_scale(e, value, saturate)
                        : e.is_integer()              ? encode_integer(value)
                                                      : encode_float(e, type, value, saturate);
  return static_cast<uint8_t>(code & mask_of(type));
}

uint8_t load_code(DType type, const void* data, int64_t i) {
  const int64_t per_byte = 8 / bits_of(type);
  const uint8_t byte = static_cast<const uint8_t*>(data)[i / per_byte];
  return static_cast<uint8_t>(byte >> (i % per_byte * bits_of(type)) & mask_of(type));
}

void store_code(DType type, void* data, int64_t i, uint8_t code) {
  const int64_t per_byte = 8 / bits_of(type);
  const auto shift = static_cast<int>(i % per_byte) * bits_of(type);
  uint8_t& byte = static_cast<uint8_t*>(data)[i / per_byte];
  byte = static_cast<uint8_t>((byte & ~(mask_of(type) << shift)) | (code & mask_of(type)) << shift);
}

void unpack(DType type, const void* packed, int64_t count, uint8_t* codes) {
  for (int64_t i = 0; i < count; ++i) codes[i] = load_code(type, packed, i);
}

void pack(DType type, const uint8_t* codes, int64_t count, void* packed) {
  const int64_t bytes = bytes_of(type, count).value_or(0);
  std::fill_n(static_cast<uint8_t*>(packed), bytes, uint8_t{0});
  for (int64_t i = 0; i < count; ++i) store_code(type, packed, i, codes[i]);
}

}  // namespace lathe
