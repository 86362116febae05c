// SPDX-License-Identifier: Apache-2.0
// Reading and writing tensors by their descriptors. A descriptor is a struct that the host writes for each tensor:
//   Type, kRank, kUnit (the dimension with stride 1; -1 = none), kVector (every run of kVector elements along kUnit
//   that starts at a multiple of kVector is one aligned vector), data, dim(i), stride(i).
// W elements at c, c + 1, ... along dimension D: W is a power of two and c[D] a multiple of W.
#pragma once

#include "lib/intrinsics.cuh"
#include "lib/levels.cuh"

template <class Tensor, int N>
LATHE_DEVICE long offset_of(const Tensor& tensor, const long (&c)[N]) {
  static_assert(N >= Tensor::kRank, "one coordinate per dimension");
  long offset = 0;
  LATHE_UNROLL
  for (int i = 0; i < Tensor::kRank; ++i) offset += c[i] * tensor.stride(i);
  return offset;
}

template <class Tensor>
LATHE_DEVICE long volume_of(const Tensor& tensor) {
  long volume = 1;
  LATHE_UNROLL
  for (int i = 0; i < Tensor::kRank; ++i) volume *= tensor.dim(i);
  return volume;
}

// Coordinates of flat index `index` in the tensor's dimensions, row-major.
template <class Tensor>
LATHE_DEVICE void unflatten(const Tensor& tensor, long index, long (&c)[Tensor::kRank > 0 ? Tensor::kRank : 1]) {
  if constexpr (Tensor::kRank == 0) {
    c[0] = 0;
  } else {
    LATHE_UNROLL
    for (int i = Tensor::kRank - 1; i > 0; --i) {
      const uint64 dim = static_cast<uint64>(tensor.dim(i)), rest = static_cast<uint64>(index);
      c[i] = static_cast<long>(rest % dim);
      index = static_cast<long>(rest / dim);
    }
    c[0] = index;
  }
}

// How many elements of a group of W go into one access.
template <class Tensor, int D, int W>
inline constexpr int kAccess = Tensor::kUnit != D    ? 1
                               : Tensor::kVector < W ? Tensor::kVector
                                                     : W;

// The first `count` of W elements, as float; the others are 0.
template <int D, int W, class Tensor, int N>
LATHE_DEVICE void load(const Tensor& tensor, const long (&c)[N], float (&v)[W], int count) {
  using T = typename Tensor::Type;
  const T* from = tensor.data + offset_of(tensor, c);
  const long step = D < Tensor::kRank ? tensor.stride(D) : 0;
  if (D >= Tensor::kRank || step == 0) {
    const float value = to_float(*from);
    LATHE_UNROLL
    for (int i = 0; i < W; ++i) v[i] = value;
    return;
  }
  constexpr int kWidth = kAccess<Tensor, D, W>;
  if (count >= W) {
    LATHE_UNROLL
    for (int i = 0; i < W; i += kWidth) {
      const Vec<T, kWidth> part = load_vector<kWidth>(from + i * step);
      LATHE_UNROLL
      for (int j = 0; j < kWidth; ++j) v[i + j] = to_float(part.at[j]);
    }
    return;
  }
  LATHE_UNROLL
  for (int i = 0; i < W; ++i) v[i] = i < count ? to_float(from[i * step]) : 0.0f;
}

// A tensor that a number surrounds: its first element is at begin(i), the number is fill(). Of what is read so, every
// run of kVector elements along kUnit that starts at a multiple of kVector is one aligned vector.
template <class Tensor>
struct Padded {
  Tensor tensor;
};

template <int D, int W, class Tensor, int N>
LATHE_DEVICE void load(const Padded<Tensor>& padded, const long (&c)[N], float (&v)[W], int count) {
  static_assert(N == Tensor::kRank && D < N, "it has every dimension");
  using T = typename Tensor::Type;
  const Tensor& tensor = padded.tensor;
  long at[N];
  bool inside = true;
  LATHE_UNROLL
  for (int i = 0; i < N; ++i) {
    at[i] = c[i] - tensor.begin(i);
    if (i != D) inside &= at[i] >= 0 && at[i] < tensor.dim(i);
  }
  const long first = offset_of(tensor, at), step = tensor.stride(D);
  constexpr int kWidth = kAccess<Tensor, D, W>;
  LATHE_UNROLL
  for (int i = 0; i < W; i += kWidth) {
    const long begin = at[D] + i, end = begin + kWidth;
    if (inside && begin >= 0 && end <= tensor.dim(D) && i + kWidth <= count) {
      const Vec<T, kWidth> part = load_vector<kWidth>(tensor.data + first + i * step);
      LATHE_UNROLL
      for (int j = 0; j < kWidth; ++j) v[i + j] = to_float(part.at[j]);
      continue;
    }
    LATHE_UNROLL
    for (int j = 0; j < kWidth; ++j) {
      const bool is_held = inside && begin + j >= 0 && begin + j < tensor.dim(D) && i + j < count;
      v[i + j] = is_held ? to_float(tensor.data[first + (i + j) * step]) : tensor.fill();
    }
  }
}

// Four numbers as 8-bit floats, the first in the low byte.
template <class T>
LATHE_DEVICE uint32 pack_float8(float a, float b, float c, float d) {
  static_assert(is_float8<T>, "what four of fit a register");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define LATHE_PACK_FLOAT8(type)                                                    \
  asm("{\n.reg .b16 low, high;\ncvt.rn.satfinite." type                            \
      "x2.f32 low, %2, %1;\n"                                                      \
      "cvt.rn.satfinite." type "x2.f32 high, %4, %3;\nmov.b32 %0, {low, high};\n}" \
      : "=r"(bits)                                                                 \
      : "f"(a), "f"(b), "f"(c), "f"(d))
  uint32 bits;
  if constexpr (is_same<T, f8e4m3>)
    LATHE_PACK_FLOAT8("e4m3");
  else
    LATHE_PACK_FLOAT8("e5m2");
#undef LATHE_PACK_FLOAT8
  return bits;
#else
  const auto bits = [](float x) { return static_cast<uint32>(from_float<T>(x).bits); };
  return bits(a) | bits(b) << 8 | bits(c) << 16 | bits(d) << 24;
#endif
}

// Several. Four 8-bit floats are made in a register.
template <class T, int kCount>
LATHE_DEVICE Vec<T, kCount> from_floats(const float* from) {
  if constexpr (is_float8<T> && kCount % 4 == 0) {
    Vec<uint32, kCount / 4> words;
    LATHE_UNROLL
    for (int i = 0; i < kCount; i += 4)
      words.at[i / 4] = pack_float8<T>(from[i], from[i + 1], from[i + 2], from[i + 3]);
    return bit_cast<Vec<T, kCount>>(words);
  } else {
    Vec<T, kCount> to;
    LATHE_UNROLL
    for (int i = 0; i < kCount; ++i) to.at[i] = from_float<T>(from[i]);
    return to;
  }
}
template <int kCount, int kZero, class T>
LATHE_DEVICE void levels_of(const float* from, Vec<T, kCount>& to) {
  if constexpr (kZero == 0 && kCount % 4 == 0) {
    Vec<uint32, kCount / 4> words;
    LATHE_UNROLL
    for (int i = 0; i < kCount; i += 4) words.at[i / 4] = four_levels<T>(from + i);
    to = bit_cast<Vec<T, kCount>>(words);
  } else {
    LATHE_UNROLL
    for (int i = 0; i < kCount; ++i) to.at[i] = level_of<T, kZero>(from[i]);
  }
}

// Writes the first `count` of W elements: converted or, by kRounds, rounded to levels that the tensor's type holds.
template <int D, bool kRounds, int kZero, int W, class Tensor, int N>
LATHE_DEVICE void store_converted(const Tensor& tensor, const long (&c)[N], const float (&v)[W], int count) {
  using T = typename Tensor::Type;
  T* to = tensor.data + offset_of(tensor, c);
  const long step = D < Tensor::kRank ? tensor.stride(D) : 0;
  constexpr int kWidth = kAccess<Tensor, D, W>;
  if (count >= W) {
    LATHE_UNROLL
    for (int i = 0; i < W; i += kWidth) {
      Vec<T, kWidth> part;
      if constexpr (kRounds)
        levels_of<kWidth, kZero>(v + i, part);
      else
        part = from_floats<T, kWidth>(v + i);
      store_vector(to + i * step, part);
    }
    return;
  }
  LATHE_UNROLL
  for (int i = 0; i < W; ++i) {
    if (i >= count) continue;
    if constexpr (kRounds)
      to[i * step] = level_of<T, kZero>(v[i]);
    else
      to[i * step] = from_float<T>(v[i]);
  }
}

// Converts and writes them.
template <int D, int W, class Tensor, int N>
LATHE_DEVICE void store(const Tensor& tensor, const long (&c)[N], const float (&v)[W], int count) {
  constexpr bool kRounds = false;
  store_converted<D, kRounds, 0>(tensor, c, v, count);
}

// What a program leaves: 8-bit floats are rounded as they are converted.
template <class Fusion, int D, int W, class Tensor, int N>
LATHE_DEVICE void store_result(const Tensor& tensor, const long (&c)[N], const float (&v)[W], int count) {
  constexpr bool kRounds = Fusion::kRounds && !is_float8<typename Tensor::Type>;
  store_converted<D, kRounds, Fusion::kZero>(tensor, c, v, count);
}
