// SPDX-License-Identifier: Apache-2.0
// Elements to lanes and back, and selection.
#include <cmath>
#include <cstring>

#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/simd.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

using elementwise::Lane;

// Elements of 16-bit floats as f32. Nothing inline of other headers: it would be compiled for this level alone.
float widen(Half value) { return static_cast<float>(value); }
float widen(BFloat16 value) {
  const uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}
template <class T>
T widen(T value) {
  return value;
}

// Converts as many contiguous elements as fill whole vectors, where the level has instructions for it (F16C), and
// returns how many: 0 at other levels.
int64_t widen_halves(const Half* source, int64_t count, float* lanes) {
  int64_t i = 0;
#if defined(LATHE_ISA_LEVEL_avx512)
  for (; i + kLanes <= count; i += kLanes)
    _mm512_storeu_ps(lanes + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + i))));
#elif defined(LATHE_ISA_LEVEL_avx2)
  for (; i + kLanes <= count; i += kLanes)
    _mm256_storeu_ps(lanes + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i))));
#endif
  return i;
}
int64_t narrow_halves(const float* lanes, int64_t count, Half* target) {
  int64_t i = 0;
#if defined(LATHE_ISA_LEVEL_avx512)
  for (; i + kLanes <= count; i += kLanes)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(target + i),
                        _mm512_cvtps_ph(_mm512_loadu_ps(lanes + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(LATHE_ISA_LEVEL_avx2)
  for (; i + kLanes <= count; i += kLanes)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(lanes + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  return i;
}

// As BFloat16's constructor does, without a branch.
BFloat16 narrow_to_bfloat(float value) {
  uint32_t f;
  std::memcpy(&f, &value, sizeof(f));
  const uint32_t rounded = (f + 0x7fffu + ((f >> 16) & 1u)) >> 16, quiet = (f >> 16) | 0x40u;
  BFloat16 result;
  result.bits = static_cast<uint16_t>((f & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
  return result;
}

template <class T, class L>
void load(const T* source, int64_t stride, int64_t count, L* lanes) {
  if (stride == 1) {
    int64_t i = 0;
    if constexpr (std::is_same_v<T, Half> && std::is_same_v<L, float>) i = widen_halves(source, count, lanes);
    for (; i < count; ++i) lanes[i] = static_cast<L>(widen(source[i]));
  } else if (stride == 0) {
    const auto value = static_cast<L>(widen(*source));
    for (int64_t i = 0; i < count; ++i) lanes[i] = value;
  } else {
    for (int64_t i = 0; i < count; ++i) lanes[i] = static_cast<L>(widen(source[i * stride]));
  }
}

// double to float with the lost bits folded into the last one, so that rounding once more rounds the double.
float round_to_odd(double value) {
  float nearest = static_cast<float>(value);
  const double back = nearest;
  if (back == value || std::isnan(value) || std::isinf(value)) return nearest;
  uint32_t bits;
  std::memcpy(&bits, &nearest, sizeof(bits));
  if (std::fabs(back) > std::fabs(value)) --bits;
  bits |= 1;
  std::memcpy(&nearest, &bits, sizeof(bits));
  return nearest;
}

// Beyond the range of 64 bits (of 32 bits for what is narrower than u32) every value is the lowest; u32 and u64 wrap.
template <class T>
T to_integer(double value) {
  if constexpr (sizeof(T) < 4 || std::is_same_v<T, int32_t>) {
    return static_cast<T>(value > -0x1p31 - 1 && value < 0x1p31 ? static_cast<int32_t>(value) : INT32_MIN);
  } else if constexpr (std::is_same_v<T, uint32_t>) {
    return value > -0x1p63 && value < 0x1p63 ? static_cast<uint32_t>(static_cast<int64_t>(value)) : 0;
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    if (value >= 0x1p63) return value < 0x1p64 ? static_cast<uint64_t>(value) : 0;
    return static_cast<uint64_t>(value >= -0x1p63 ? static_cast<int64_t>(value) : INT64_MIN);
  } else {
    return value >= -0x1p63 && value < 0x1p63 ? static_cast<int64_t>(value) : INT64_MIN;
  }
}

template <class T, class L>
T narrow(L value) {
  if constexpr (std::is_class_v<T>) {
    if constexpr (std::is_same_v<L, float> && std::is_same_v<T, BFloat16>) return narrow_to_bfloat(value);
    if constexpr (std::is_same_v<L, float>) return T(value);
    return T(round_to_odd(static_cast<double>(value)));
  } else if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<L>) {
    return to_integer<T>(value);
  } else {
    return static_cast<T>(value);
  }
}

template <class L, class T>
void store(const L* lanes, int64_t count, T* target, int64_t stride) {
  int64_t i = 0;
  if constexpr (std::is_same_v<T, Half> && std::is_same_v<L, float>)
    if (stride == 1) i = narrow_halves(lanes, count, target);
  if (stride == 1)
    for (; i < count; ++i) target[i] = narrow<T>(lanes[i]);
  else
    for (; i < count; ++i) target[i * stride] = narrow<T>(lanes[i]);
}

template <class F>
void with_lane(Lane lane, F&& f) {
  switch (lane) {
    case Lane::i64:
      return f(int64_t{});
    case Lane::u64:
      return f(uint64_t{});
    case Lane::f32:
      return f(float{});
    case Lane::f64:
      return f(double{});
  }
}

template <class T>
void select(const void* const* inputs, T* target, const int64_t* strides, int64_t count) {
  const auto* condition = static_cast<const uint8_t*>(inputs[0]);
  const T *yes = static_cast<const T*>(inputs[1]), *no = static_cast<const T*>(inputs[2]);
  const bool dense = strides[0] == 1 && strides[1] == 1;
  const int64_t a = strides[2], b = strides[3];
  if (dense && a == 1 && b == 1)
    for (int64_t i = 0; i < count; ++i) target[i] = condition[i] ? yes[i] : no[i];
  else if (dense && a == 0 && b == 1)
    for (int64_t i = 0; i < count; ++i) target[i] = condition[i] ? *yes : no[i];
  else if (dense && a == 1 && b == 0)
    for (int64_t i = 0; i < count; ++i) target[i] = condition[i] ? yes[i] : *no;
  else if (dense && a == 0 && b == 0)
    for (int64_t i = 0; i < count; ++i) target[i] = condition[i] ? *yes : *no;
  else
    for (int64_t i = 0; i < count; ++i) target[i * strides[0]] = condition[i * strides[1]] ? yes[i * a] : no[i * b];
}

}  // namespace

const void* load_elements(DType type, const void* source, int64_t stride, int64_t count, Lane lane, void* block) {
  const void* result = block;
  with_lane(lane, [&](auto zero) {
    using L = decltype(zero);
    dispatch(type, [&](auto element) {
      using T = decltype(element);
      if (std::is_same_v<T, L> && stride == 1)
        result = source;
      else if constexpr (std::is_integral_v<L> && !std::is_integral_v<T>)
        __builtin_unreachable();  // floats are never lanes of integers
      else
        load(static_cast<const T*>(source), stride, count, static_cast<L*>(block));
    });
  });
  return result;
}

void store_elements(Lane lane, const void* block, int64_t count, DType type, void* target, int64_t stride) {
  with_lane(lane, [&](auto zero) {
    using L = decltype(zero);
    dispatch(type, [&](auto element) {
      using T = decltype(element);
      store(static_cast<const L*>(block), count, static_cast<T*>(target), stride);
    });
  });
}

void select_elements(size_t size, const void* const* inputs, void* target, const int64_t* strides, int64_t count) {
  switch (size) {
    case 1:
      return select(inputs, static_cast<uint8_t*>(target), strides, count);
    case 2:
      return select(inputs, static_cast<uint16_t*>(target), strides, count);
    case 4:
      return select(inputs, static_cast<uint32_t*>(target), strides, count);
    default:
      return select(inputs, static_cast<uint64_t*>(target), strides, count);
  }
}

}  // namespace lathe::cpu::LATHE_ISA
