// SPDX-License-Identifier: Apache-2.0
// Conversion of tensor elements to the two types in which evaluations compute, and back (declared in rules.h).
#include <bit>
#include <cmath>

#include "base/encoding.h"
#include "ops/rules.h"

namespace lathe {
namespace {

// double to float with the lost bits folded into the last one: rounding the result again, to a type with at least two
// bits less, gives what one rounding of the double would have given.
float round_to_odd(double value) {
  float nearest = static_cast<float>(value);
  const double back = nearest;
  if (back == value || std::isnan(value) || std::isinf(value)) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::fabs(back) > std::fabs(value)) --bits;  // towards zero; from infinity this gives the largest float
  return std::bit_cast<float>(bits | 1u);
}

template <class T>
T to_integer(double value) {
  if constexpr (std::is_same_v<T, int64_t>) {
    return value >= -0x1p63 && value < 0x1p63 ? static_cast<int64_t>(value) : INT64_MIN;
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    if (value >= 0x1p63) return value < 0x1p64 ? static_cast<uint64_t>(value) : 0;
    return static_cast<uint64_t>(value >= -0x1p63 ? static_cast<int64_t>(value) : INT64_MIN);
  } else if constexpr (std::is_same_v<T, uint32_t>) {
    return value > -0x1p63 && value < 0x1p63 ? static_cast<uint32_t>(static_cast<int64_t>(value)) : 0;
  } else {
    return static_cast<T>(value > -0x1p31 - 1 && value < 0x1p31 ? static_cast<int32_t>(value) : INT32_MIN);
  }
}

template <class T>
void read_codes(const Tensor& tensor, int64_t begin, std::span<T> values) {
  const DType type = tensor.dtype();
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>(decode(type, load_code(type, tensor.data(), begin + static_cast<int64_t>(i))));
}

template <class T>
void write_codes(std::span<const T> values, int64_t begin, Tensor& tensor, bool saturate) {
  const DType type = tensor.dtype();
  for (size_t i = 0; i < values.size(); ++i)
    store_code(type, tensor.mutable_data(), begin + static_cast<int64_t>(i),
               encode(type, static_cast<double>(values[i]), saturate));
}

}  // namespace

template <class T>
T round_to(double value) {
  if constexpr (std::is_same_v<T, double>)
    return value;
  else if constexpr (std::is_same_v<T, float>)
    return static_cast<float>(value);
  else if constexpr (std::is_class_v<T>)
    return T(round_to_odd(value));
  else if constexpr (std::is_same_v<T, bool>)
    return value != 0;
  else
    return to_integer<T>(value);
}

void read_doubles(const Tensor& tensor, int64_t begin, std::span<double> values) {
  if (is_storage_only(tensor.dtype())) return read_codes(tensor, begin, values);
  dispatch(tensor.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* source = tensor.as<T>() + begin;
    if constexpr (std::is_same_v<T, double>) {
      std::copy_n(source, values.size(), values.begin());
    } else {
      for (size_t i = 0; i < values.size(); ++i) {
        if constexpr (std::is_class_v<T>)
          values[i] = static_cast<float>(source[i]);
        else
          values[i] = static_cast<double>(source[i]);
      }
    }
  });
}

void write_doubles(std::span<const double> values, int64_t begin, Tensor& tensor) {
  if (is_storage_only(tensor.dtype())) return write_codes(values, begin, tensor, true);
  dispatch(tensor.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* target = tensor.mutable_as<T>() + begin;
    if constexpr (std::is_same_v<T, double>)
      std::ranges::copy(values, target);
    else
      for (size_t i = 0; i < values.size(); ++i) target[i] = round_to<T>(values[i]);
  });
}

void encode_doubles(std::span<const double> values, int64_t begin, Tensor& tensor, bool saturate) {
  is_storage_only(tensor.dtype()) ? write_codes(values, begin, tensor, saturate) : write_doubles(values, begin, tensor);
}

void read_ints(const Tensor& tensor, int64_t begin, std::span<int64_t> values) {
  if (is_storage_only(tensor.dtype())) return read_codes(tensor, begin, values);
  dispatch(tensor.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* source = tensor.as<T>() + begin;
    for (size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_class_v<T>)
        values[i] = static_cast<int64_t>(static_cast<float>(source[i]));
      else
        values[i] = static_cast<int64_t>(source[i]);
    }
  });
}

void write_ints(std::span<const int64_t> values, int64_t begin, Tensor& tensor) {
  if (is_storage_only(tensor.dtype())) return write_codes(values, begin, tensor, true);
  dispatch(tensor.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* target = tensor.mutable_as<T>() + begin;
    for (size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_class_v<T>)
        target[i] = round_to<T>(static_cast<double>(values[i]));
      else if constexpr (std::is_same_v<T, bool>)
        target[i] = values[i] != 0;
      else
        target[i] = static_cast<T>(values[i]);
    }
  });
}

int64_t wrap_to(DType dtype, int64_t value) {
  if (is_storage_only(dtype)) return static_cast<int64_t>(decode(dtype, encode(dtype, static_cast<double>(value))));
  return dispatch(dtype, [&](auto zero) -> int64_t {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, bool>)
      return value != 0;
    else if constexpr (std::is_integral_v<T>)
      return static_cast<int64_t>(static_cast<T>(value));
    else
      return value;
  });
}

void order_bits(DType dtype, std::span<int64_t> values) {
  if (dtype != DType::u64) return;
  for (int64_t& value : values) value ^= INT64_MIN;
}

std::vector<double> to_doubles(const Tensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.volume()));
  read_doubles(tensor, 0, values);
  return values;
}

void from_doubles(std::span<const double> values, Tensor& tensor) { write_doubles(values, 0, tensor); }

std::vector<int64_t> to_ints(const Tensor& tensor) {
  std::vector<int64_t> values(static_cast<size_t>(tensor.volume()));
  read_ints(tensor, 0, values);
  return values;
}

void from_ints(std::span<const int64_t> values, Tensor& tensor) { write_ints(values, 0, tensor); }

#define LATHE_INSTANTIATE(T) template T round_to<T>(double);
LATHE_INSTANTIATE(float)
LATHE_INSTANTIATE(double)
LATHE_INSTANTIATE(Half)
LATHE_INSTANTIATE(BFloat16)
LATHE_INSTANTIATE(int8_t)
LATHE_INSTANTIATE(int16_t)
LATHE_INSTANTIATE(int32_t)
LATHE_INSTANTIATE(int64_t)
LATHE_INSTANTIATE(uint8_t)
LATHE_INSTANTIATE(uint16_t)
LATHE_INSTANTIATE(uint32_t)
LATHE_INSTANTIATE(uint64_t)
LATHE_INSTANTIATE(bool)
#undef LATHE_INSTANTIATE

}  // namespace lathe
