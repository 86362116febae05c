// SPDX-License-Identifier: Apache-2.0
// Element types, conversions and vectors. Conversions to 16-bit floats round to nearest even; to integers they truncate
// and saturate, NaN gives 0.
#pragma once

#ifdef LATHE_EMULATED
#define LATHE_DEVICE static inline
#define LATHE_DEVICE_MEMBER inline
#define LATHE_KERNEL(threads, min_blocks) extern "C" __attribute__((visibility("default")))
#define LATHE_PARAMETERS(count) \
  extern "C" __attribute__((visibility("default"))) const unsigned lathe_kernel_parameters = count;
#define LATHE_TENSOR_MAPS(count) \
  extern "C" __attribute__((visibility("default"))) const unsigned lathe_kernel_maps = count;
#define LATHE_UNROLL
#define LATHE_NO_UNROLL
#else
#define LATHE_DEVICE static __forceinline__ __device__
#define LATHE_DEVICE_MEMBER __forceinline__ __device__
#define LATHE_KERNEL(threads, min_blocks) extern "C" __global__ __launch_bounds__(threads, min_blocks)
#define LATHE_PARAMETERS(count)
#define LATHE_TENSOR_MAPS(count)
#define LATHE_UNROLL _Pragma("unroll")
#define LATHE_NO_UNROLL _Pragma("unroll 1")
#endif

using int8 = signed char;
using int16 = short;
using int32 = int;
using int64 = long;
using uint8 = unsigned char;
using uint16 = unsigned short;
using uint32 = unsigned;
using uint64 = unsigned long;

struct f16 {
  uint16 bits;
};
struct bf16 {
  uint16 bits;
};

// 8-bit floats: 4 bits of exponent, NaN and no infinity; and 5 bits, the upper half of an f16.
struct f8e4m3 {
  uint8 bits;
};
struct f8e5m2 {
  uint8 bits;
};
// 4-bit floats: 2 bits of exponent, numbers alone. In the low bits.
struct f4e2m1 {
  uint8 bits;
};

template <class To, class From>
LATHE_DEVICE To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast keeps the size");
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

template <class A, class B>
inline constexpr bool is_same = false;
template <class A>
inline constexpr bool is_same<A, A> = true;

template <class T>
inline constexpr bool is_float = is_same<T, float> || is_same<T, double> || is_same<T, f16> || is_same<T, bf16>;
template <class T>
inline constexpr bool is_signed_int = is_same<T, int8> || is_same<T, int16> || is_same<T, int32> || is_same<T, int64>;

template <class T>
inline constexpr bool is_float8 = is_same<T, f8e4m3> || is_same<T, f8e5m2>;

// What matrix units sum up products of a type in.
template <class T>
struct MatrixSum {
  using Type = float;
};
template <>
struct MatrixSum<int8> {
  using Type = int;
};

// ---- 16-bit floats

LATHE_DEVICE float f16_to_float(uint16 bits) {
#ifdef LATHE_EMULATED
  const uint32 sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 31u, mantissa = bits & 1023u;
  if (exponent == 31) return bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
#else
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
#endif
}

LATHE_DEVICE uint16 f16_bits(float value) {
#ifdef LATHE_EMULATED
  const uint32 bits = bit_cast<uint32>(value), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16>(0x7fffu);
  if (magnitude >= 0x477ff000u) return static_cast<uint16>(sign | 0x7c00u);
  if (magnitude < 0x38800000u)  // subnormal: adding 0.5 leaves the rounded multiple of 2^-24 in the low bits
    return static_cast<uint16>(sign | (bit_cast<uint32>(bit_cast<float>(magnitude) + 0.5f) & 0xffffu));
  return static_cast<uint16>(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13));
#else
  uint16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#endif
}

LATHE_DEVICE float bf16_to_float(uint16 bits) { return bit_cast<float>(static_cast<uint32>(bits) << 16); }

LATHE_DEVICE uint16 bf16_bits(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#else
  const uint32 bits = bit_cast<uint32>(value);
  if (value != value) return 0x7fff;
  return static_cast<uint16>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#endif
}

// ---- 8-bit floats

LATHE_DEVICE float e4m3_to_float(uint8 bits) {
  const uint32 sign = (bits & 0x80u) << 24, magnitude = bits & 0x7fu;
  if (magnitude == 0x7fu) return bit_cast<float>(sign | 0x7fffffffu);
  return bit_cast<float>(bit_cast<uint32>(bit_cast<float>(magnitude << 20) * 0x1p120f) | sign);
}
LATHE_DEVICE float e5m2_to_float(uint8 bits) { return f16_to_float(static_cast<uint16>(bits << 8)); }

// To nearest, ties to even; what lies beyond the largest number, infinities too, becomes that. The rounded magnitude is
// kMantissa bits and an exponent whose bias is kBias, of which kLargest is the largest and kNan NaN.
template <int kMantissa, int kBias, uint32 kLargest, uint32 kNan>
LATHE_DEVICE uint8 float8_bits(float value) {
  constexpr int kDropped = 23 - kMantissa;
  const uint32 bits = bit_cast<uint32>(value), sign = (bits >> 24) & 0x80u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint8>(sign | kNan);
  uint32 rounded = 0;
  if (magnitude < static_cast<uint32>(128 - kBias) << 23) {  // subnormal: a sum whose last bit is that of the result
    const float last = bit_cast<float>(static_cast<uint32>(128 - kBias + kDropped) << 23);
    rounded = bit_cast<uint32>(bit_cast<float>(magnitude) + last) - bit_cast<uint32>(last);
  } else {
    const uint32 even = (magnitude >> kDropped) & 1u;
    rounded = (magnitude - (static_cast<uint32>(127 - kBias) << 23) + (1u << (kDropped - 1)) - 1u + even) >> kDropped;
  }
  return static_cast<uint8>(sign | (rounded < kLargest ? rounded : kLargest));
}
LATHE_DEVICE uint8 e4m3_bits(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  uint16 pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
  return static_cast<uint8>(pair);
#else
  return float8_bits<3, 7, 0x7eu, 0x7fu>(value);
#endif
}
LATHE_DEVICE uint8 e5m2_bits(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  uint16 pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
  return static_cast<uint8>(pair);
#else
  return float8_bits<2, 15, 0x7bu, 0x7eu>(value);
#endif
}

// f32 rounded to the 10 mantissa bits of tf32 (half away from zero, as the hardware does), as a register.
LATHE_DEVICE uint32 tf32_bits(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint32 bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
#else
  const uint32 bits = bit_cast<uint32>(value);
  if ((bits & 0x7f800000u) == 0x7f800000u) return bits;
  return (bits + 0x1000u) & 0xffffe000u;
#endif
}

// ---- conversions

LATHE_DEVICE float to_float(float value) { return value; }
LATHE_DEVICE float to_float(double value) { return static_cast<float>(value); }
LATHE_DEVICE float to_float(f16 value) { return f16_to_float(value.bits); }
LATHE_DEVICE float to_float(bf16 value) { return bf16_to_float(value.bits); }
LATHE_DEVICE float to_float(f8e4m3 value) { return e4m3_to_float(value.bits); }
LATHE_DEVICE float to_float(f8e5m2 value) { return e5m2_to_float(value.bits); }
LATHE_DEVICE float to_float(f4e2m1 value) {  // an f32 whose exponent's bias is larger by 126
  return bit_cast<float>((value.bits & 7u) << 22 | (value.bits & 8u) << 28) * 0x1p126f;
}
template <class T>
LATHE_DEVICE float to_float(T value) {
#ifndef LATHE_EMULATED
  // By way of words, whose conversion shares no unit with those to integers, as that of bytes does.
  if constexpr (sizeof(T) < 4) {
    int32 whole = value;
    asm("" : "+r"(whole));
    return static_cast<float>(whole);
  }
#endif
  return static_cast<float>(value);
}

template <class T>
LATHE_DEVICE double to_double(T value) {
  if constexpr (is_same<T, f16> || is_same<T, bf16>)
    return to_float(value);
  else
    return static_cast<double>(value);
}

template <class T>
struct Limits {  // of integers
  static constexpr bool kSigned = is_signed_int<T>;
  static constexpr int kBits = static_cast<int>(sizeof(T)) * 8 - (kSigned ? 1 : 0);
  static constexpr T kMax = static_cast<T>(~uint64{0} >> (64 - kBits));
  static constexpr T kMin = kSigned ? static_cast<T>(-static_cast<int64>(kMax) - 1) : T{0};
};

// Truncates and saturates; NaN gives 0.
template <class T, class Float>
LATHE_DEVICE T saturate(Float value) {
#ifndef LATHE_EMULATED
  if constexpr (is_same<Float, float> && sizeof(T) <= 4) {  // as the instruction does to 32 bits: nothing branches
    if constexpr (is_signed_int<T>) {
      int32 whole;
      asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(whole) : "f"(value));
      return static_cast<T>(max(min(whole, int32{Limits<T>::kMax}), int32{Limits<T>::kMin}));
    } else {
      uint32 whole;
      asm("cvt.rzi.u32.f32 %0, %1;" : "=r"(whole) : "f"(value));
      return static_cast<T>(min(whole, uint32{Limits<T>::kMax}));
    }
  }
#endif
  // 2^kBits is exact in every floating type, kMax need not be.
  constexpr Float kEnd = static_cast<Float>(uint64{1} << (Limits<T>::kBits - 1)) * Float{2};
  if (value != value) return T{0};
  if (value >= kEnd) return Limits<T>::kMax;
  if (value <= static_cast<Float>(Limits<T>::kMin)) return Limits<T>::kMin;
  return static_cast<T>(value);
}

template <class T>
LATHE_DEVICE T from_float(float value) {
  if constexpr (is_same<T, float> || is_same<T, double>)
    return value;
  else if constexpr (is_same<T, f16>)
    return f16{f16_bits(value)};
  else if constexpr (is_same<T, bf16>)
    return bf16{bf16_bits(value)};
  else if constexpr (is_same<T, f8e4m3>)
    return f8e4m3{e4m3_bits(value)};
  else if constexpr (is_same<T, f8e5m2>)
    return f8e5m2{e5m2_bits(value)};
  else if constexpr (is_same<T, bool>)
    return value != 0;
  else
    return saturate<T>(value);
}

// Two 16-bit floats in a register.
template <class T>
LATHE_DEVICE uint32 pack_floats(float low, float high) {
  static_assert(is_same<T, f16> || is_same<T, bf16>, "what two of fit a register");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint32 bits;
  if constexpr (is_same<T, f16>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
#else
  return from_float<T>(low).bits | static_cast<uint32>(from_float<T>(high).bits) << 16;
#endif
}

// ---- vectors: N elements (a power of two, 16 bytes at most) that are loaded and stored as one

template <class T, int N>
struct alignas(sizeof(T) * N) Vec {
  T at[N];
};

#ifdef LATHE_EMULATED
extern "C" void lathe_emulated_misaligned(const void* address, unsigned bytes);
template <int kBytes>
LATHE_DEVICE void check_alignment(const void* address) {
  if (reinterpret_cast<uint64>(address) % kBytes != 0) lathe_emulated_misaligned(address, kBytes);
}
#else
// The word that holds a vector. (The compiler copies a Vec by elements, or by bytes where it knows no alignment.)
template <int kBytes>
struct WordOf;
template <>
struct WordOf<1> {
  using Type = uint8;
};
template <>
struct WordOf<2> {
  using Type = uint16;
};
template <>
struct WordOf<4> {
  using Type = uint32;
};
template <>
struct WordOf<8> {
  using Type = uint2;
};
template <>
struct WordOf<16> {
  using Type = uint4;
};
#endif

// A vector from memory in one access.
template <int N, class T>
LATHE_DEVICE Vec<T, N> load_vector(const T* from) {
#ifdef LATHE_EMULATED
  check_alignment<sizeof(Vec<T, N>)>(from);
  return *reinterpret_cast<const Vec<T, N>*>(from);
#else
  const auto word = *reinterpret_cast<const typename WordOf<sizeof(Vec<T, N>)>::Type*>(from);
  return bit_cast<Vec<T, N> >(word);
#endif
}

// A vector to global memory in one access.
template <class T, int N>
LATHE_DEVICE void store_vector(T* to, const Vec<T, N>& value) {
#ifdef LATHE_EMULATED
  check_alignment<sizeof(Vec<T, N>)>(to);
#else
  if constexpr (sizeof(Vec<T, N>) == 16) {
    const uint4 v = bit_cast<uint4>(value);
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
    return;
  }
  if constexpr (sizeof(Vec<T, N>) == 8) {
    const uint2 v = bit_cast<uint2>(value);
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(v.x), "r"(v.y) : "memory");
    return;
  }
  if constexpr (sizeof(Vec<T, N>) == 4) {
    *reinterpret_cast<uint32*>(to) = bit_cast<uint32>(value);
    return;
  }
#endif
  *reinterpret_cast<Vec<T, N>*>(to) = value;
}

// From anywhere to anywhere.
template <int N, class T>
LATHE_DEVICE void move_vector(T* to, const T* from) {
#ifdef LATHE_EMULATED
  check_alignment<sizeof(Vec<T, N>)>(from);
  check_alignment<sizeof(Vec<T, N>)>(to);
  *reinterpret_cast<Vec<T, N>*>(to) = *reinterpret_cast<const Vec<T, N>*>(from);
#else
  using Word = typename WordOf<sizeof(Vec<T, N>)>::Type;
  *reinterpret_cast<Word*>(to) = *reinterpret_cast<const Word*>(from);
#endif
}
