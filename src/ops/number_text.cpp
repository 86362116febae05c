// SPDX-License-Identifier: Apache-2.0
#include "ops/number_text.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

namespace lathe {
namespace {

template <class T>
constexpr bool kIsFloat =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
constexpr bool kIsNative = std::is_same_v<T, float> || std::is_same_v<T, double>;

double to_double(float value) { return static_cast<double>(value); }
double to_double(double value) { return value; }
double to_double(Half value) { return static_cast<double>(static_cast<float>(value)); }
double to_double(BFloat16 value) { return static_cast<double>(static_cast<float>(value)); }

constexpr size_t kLongest = 32;  // "-1.2345678901234567e-308"

template <class T, class... Precision>
std::string scientific(T value, Precision... precision) {
  char text[kLongest];
  return {text, std::to_chars(text, text + kLongest, value, std::chars_format::scientific, precision...).ptr};
}

// d.ddde+xx with the fewest digits.
template <class T>
std::string shortest(T value) {
  if constexpr (kIsNative<T>) {
    return scientific(value);
  } else {
    std::string text;
    for (int digits = 0; digits < std::numeric_limits<float>::max_digits10; ++digits) {
      text = scientific(to_double(value), digits);
      if (number_of<T>(text)->bits == value.bits) break;
    }
    return text;
  }
}

std::string plain(std::string_view digits, int exponent) {
  const int count = static_cast<int>(digits.size());
  std::string text(digits);
  if (exponent < 0) return "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + text;
  if (exponent >= count - 1) return text + std::string(static_cast<size_t>(exponent + 1 - count), '0') + ".0";
  return text.insert(static_cast<size_t>(exponent + 1), 1, '.');
}

template <class T>
std::string float_text(T value) {
  const double wide = to_double(value);
  if (std::isnan(wide)) return "NaN";
  const std::string sign = std::signbit(wide) ? "-" : "";
  if (std::isinf(wide)) return sign + "INF";
  if (wide == 0) return sign + "0.0";
  std::string text = shortest(value);
  if (!sign.empty()) text.erase(0, 1);
  const size_t e = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), text.data() + text.size(), exponent);
  if (exponent < -4 || exponent >= 16) return sign + text;
  std::string digits = text.substr(0, e);
  std::erase(digits, '.');
  return sign + plain(digits, exponent);
}

bool is_white(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Without white space around it, a plus sign, and in lower case.
std::string normal(std::string_view text) {
  while (!text.empty() && is_white(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_white(text.back())) text.remove_suffix(1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

// The nearest float in the direction of zero, with an odd last digit where digits were cut off: rounded once more, to a
// type of fewer digits, it becomes what the double would.
float cut_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (!std::isfinite(nearest) || static_cast<double>(nearest) == value) return nearest;
  const float below =
      std::fabs(static_cast<double>(nearest)) > std::fabs(value) ? std::nextafter(nearest, 0.0F) : nearest;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(below) | 1);
}

// A number as 0.digits * 10^exponent, whose first digit is not 0; without digits it is 0.
struct Decimals {
  bool is_negative;
  std::string digits;
  int64_t exponent;
};

// Of a text of decimals that from_chars() takes. Exponents are clamped to half of int64_t, so that where the point is
// can be added to them.
Decimals decimals_of(std::string_view text) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 2;
  Decimals read{text.starts_with('-'), {}, 0};
  const size_t e = std::min(text.find('e'), text.size());
  if (e < text.size()) {
    const std::string_view power = text.substr(text[e + 1] == '+' ? e + 2 : e + 1);
    const auto [end, error] = std::from_chars(power.data(), power.data() + power.size(), read.exponent);
    if (error == std::errc::result_out_of_range) read.exponent = power.starts_with('-') ? -kMost : kMost;
    read.exponent = std::clamp(read.exponent, -kMost, kMost);
  }
  read.digits = text.substr(0, e);
  if (read.is_negative) read.digits.erase(0, 1);
  const size_t point = std::min(read.digits.find('.'), read.digits.size());
  read.digits.erase(point, 1);
  const size_t zeros = std::min(read.digits.find_first_not_of('0'), read.digits.size());
  read.digits.erase(0, zeros);
  read.exponent += static_cast<int64_t>(point) - static_cast<int64_t>(zeros);
  return read;
}

// What a text of decimals beyond the type's range is: from_chars() does not tell 1e999 from 1e-999.
double out_of_range(std::string_view text) {
  const Decimals read = decimals_of(text);
  return (read.is_negative ? -1 : 1) * (read.exponent <= 0 ? 0.0 : std::numeric_limits<double>::infinity());
}

template <class T>
std::optional<T> decimal(std::string_view text) {
  if (text == "true") return T(1);
  if (text == "false") return T(0);
  if (text.find_first_of("()") != std::string_view::npos) return std::nullopt;  // from_chars() takes nan(1)
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return std::nullopt;
  return error == std::errc::result_out_of_range ? static_cast<T>(out_of_range(text)) : value;
}

// Read as a double first, which tells whether it is a number and bounds its exponent; then digit by digit, as doubles
// do not hold all integers.
template <class T>
std::optional<T> integer(std::string_view text) {
  const std::optional<double> wide = decimal<double>(text);
  if (!wide || !(std::fabs(*wide) <= std::ldexp(1.0, 64))) return std::nullopt;
  if (*wide == 0 || text == "true") return static_cast<T>(*wide);
  Decimals read = decimals_of(text);
  if (read.exponent <= 0) return T(0);
  read.digits.resize(static_cast<size_t>(read.exponent), '0');
  if (read.is_negative) read.digits.insert(0, 1, '-');
  T value{};
  const auto [end, error] = std::from_chars(read.digits.data(), read.digits.data() + read.digits.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace

int64_t text_width(DType type) {
  switch (type) {
    case DType::f64:
      return 24;  // -1.2345678901234567e-308
    case DType::f32:
    case DType::bf16:
      return 19;  // -1000000000000000.0
    case DType::f16:
      return 11;  // -0.00010014
    case DType::boolean:
      return 5;
    default:
      break;
  }
  return dispatch(type, [](auto zero) -> int64_t {
    using T = decltype(zero);
    return std::numeric_limits<T>::digits10 + 1 + (std::numeric_limits<T>::is_signed ? 1 : 0);
  });
}

template <class T>
std::string text_of(T value) {
  if constexpr (kIsFloat<T>)
    return float_text(value);
  else if constexpr (std::is_same_v<T, bool>)
    return value ? "True" : "False";
  else
    return std::to_string(value);
}

template <class T>
std::optional<T> number_of(std::string_view text) {
  const std::string read = normal(text);
  if constexpr (std::is_same_v<T, bool>) {
    const std::optional<double> value = decimal<double>(read);
    return value ? std::optional(*value != 0) : std::nullopt;
  } else if constexpr (kIsNative<T>) {
    return decimal<T>(read);
  } else if constexpr (kIsFloat<T>) {
    const std::optional<double> value = decimal<double>(read);
    return value ? std::optional(T(cut_to_odd(*value))) : std::nullopt;
  } else {
    return integer<T>(read);
  }
}

#define LATHE_NUMBER_TEXT(T)                \
  template std::string text_of<T>(T value); \
  template std::optional<T> number_of<T>(std::string_view text);
LATHE_NUMBER_TEXT(double)
LATHE_NUMBER_TEXT(float)
LATHE_NUMBER_TEXT(Half)
LATHE_NUMBER_TEXT(BFloat16)
LATHE_NUMBER_TEXT(int8_t)
LATHE_NUMBER_TEXT(int16_t)
LATHE_NUMBER_TEXT(int32_t)
LATHE_NUMBER_TEXT(int64_t)
LATHE_NUMBER_TEXT(uint8_t)
LATHE_NUMBER_TEXT(uint16_t)
LATHE_NUMBER_TEXT(uint32_t)
LATHE_NUMBER_TEXT(uint64_t)
LATHE_NUMBER_TEXT(bool)
#undef LATHE_NUMBER_TEXT

}  // namespace lathe
