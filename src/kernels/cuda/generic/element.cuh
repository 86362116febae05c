// SPDX-License-Identifier: Apache-2.0
// Elements as the ops' plain evaluations see them: floats as double, integers as int64 (u64 as uint64 where its order
// or quotients count); a result is rounded once, when it is written.
#pragma once

#include "lib/tensor.cuh"

template <class T>
inline constexpr bool is_unsigned_64 = is_same<T, uint64>;

template <class T, bool kFloat = is_float<T>>
struct WideOf {
  using Type = int64;
};
template <class T>
struct WideOf<T, true> {
  using Type = double;
};
template <>
struct WideOf<uint64, false> {
  using Type = uint64;
};
template <class T>
using Wide = typename WideOf<T>::Type;

template <class T>
struct remove_reference_of {
  using Type = T;
};
template <class T>
struct remove_reference_of<T&> {
  using Type = T;
};

template <class W, class T>
LATHE_DEVICE W widen_to(T value) {
  if constexpr (is_same<T, f16> || is_same<T, bf16>)
    return static_cast<W>(to_float(value));
  else
    return static_cast<W>(value);
}
template <class T>
LATHE_DEVICE Wide<T> widen(T value) {
  return widen_to<Wide<T>>(value);
}

LATHE_DEVICE double infinite() { return bit_cast<double>(uint64{0x7ff0000000000000}); }

// double to float with the lost bits folded into the last one, so that rounding again to 16 bits gives what one
// rounding would have given.
LATHE_DEVICE float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = nearest;
  if (back == value || value != value || isinf(value)) return nearest;
  uint32 bits = bit_cast<uint32>(nearest);
  if (fabs(back) > fabs(value)) --bits;
  return bit_cast<float>(bits | 1u);
}

// Integers truncate; what is out of range gives what x86 gives (ops/rules.h says it in full).
template <class T>
LATHE_DEVICE T truncate(double value) {
  constexpr double kTwo63 = 0x1p63;
  if constexpr (is_same<T, int64>) {
    return value >= -kTwo63 && value < kTwo63 ? static_cast<int64>(value) : Limits<int64>::kMin;
  } else if constexpr (is_same<T, uint64>) {
    if (value >= kTwo63) return value < 2 * kTwo63 ? static_cast<uint64>(value) : 0;
    return static_cast<uint64>(value >= -kTwo63 ? static_cast<int64>(value) : Limits<int64>::kMin);
  } else if constexpr (is_same<T, uint32>) {
    return value > -kTwo63 && value < kTwo63 ? static_cast<uint32>(static_cast<int64>(value)) : 0;
  } else {
    return static_cast<T>(value > -0x1p31 - 1 && value < 0x1p31 ? static_cast<int32>(value) : Limits<int32>::kMin);
  }
}

template <class T>
LATHE_DEVICE T narrow(double value) {
  if constexpr (is_same<T, double>)
    return value;
  else if constexpr (is_same<T, float>)
    return static_cast<float>(value);
  else if constexpr (is_same<T, f16> || is_same<T, bf16>)
    return from_float<T>(round_to_odd(value));
  else if constexpr (is_same<T, bool>)
    return value != 0;
  else
    return truncate<T>(value);
}
// Integers wrap, floats are rounded once, bool is "not 0".
template <class T, class Integer>
LATHE_DEVICE T narrow(Integer value) {
  if constexpr (is_same<T, f16> || is_same<T, bf16>)
    return narrow<T>(static_cast<double>(value));
  else if constexpr (is_same<T, bool>)
    return value != 0;
  else
    return static_cast<T>(value);
}

template <class Tensor>
inline constexpr int kCoordinates = Tensor::kRank > 0 ? Tensor::kRank : 1;

template <class Tensor, int N>
LATHE_DEVICE typename Tensor::Type& element(const Tensor& tensor, const long (&c)[N]) {
  return tensor.data[offset_of(tensor, c)];
}

// Writes a result of the op through the fusion program.
template <class Fusion, class Out, class W, int N>
LATHE_DEVICE void put(const Fusion& fusion, const Out& out, const long (&c)[N], W value) {
  using T = typename Out::Type;
  if constexpr (Fusion::kIdentity) {
    element(out, c) = narrow<T>(value);
  } else {
    float v[1] = {static_cast<float>(value)};
    fusion.template apply<0>(v, c, 1);
    element(out, c) = from_float<T>(v[0]);
  }
}

// f(i) for i in [0, count), a thread each.
template <class F>
LATHE_DEVICE void for_each(long count, F f) {
  // Unsigned, so that the compiler sees the range and divides in 32 bits where that is enough.
  const uint64 i = static_cast<uint64>(static_cast<uint32>(block_x())) * static_cast<uint32>(block_threads()) +
                   static_cast<uint32>(thread_x());
  dependency_wait();
  if (i < static_cast<uint64>(count)) f(static_cast<long>(i));
}
// f(c) for all coordinates of a tensor.
template <class Tensor, class F>
LATHE_DEVICE void for_each_element(const Tensor& tensor, F f) {
  for_each(volume_of(tensor), [&](long i) {
    long c[kCoordinates<Tensor>];
    unflatten(tensor, i, c);
    f(c);
  });
}

// Coordinates of the first element of line `index` along `axis`, and how many lines there are.
template <class Tensor, int N>
LATHE_DEVICE void line_coordinates(const Tensor& tensor, int axis, long index, long (&c)[N]) {
  LATHE_UNROLL
  for (int i = Tensor::kRank - 1; i >= 0; --i) {
    c[i] = 0;
    if (i == axis) continue;
    const uint64 dim = static_cast<uint64>(tensor.dim(i)), rest = static_cast<uint64>(index);
    c[i] = static_cast<long>(rest % dim);
    index = static_cast<long>(rest / dim);
  }
}
template <class Tensor>
LATHE_DEVICE long count_lines(const Tensor& tensor, int axis) {
  long count = 1;
  LATHE_UNROLL
  for (int i = 0; i < Tensor::kRank; ++i)
    if (i != axis) count *= tensor.dim(i);
  return count;
}

// Integers that a launch knows (List) and integers that only device memory holds (Stored) are asked alike: values(i).
template <class Tensor>
struct Stored {
  Tensor tensor;
  LATHE_DEVICE_MEMBER long operator()(int i) const {
    return static_cast<long>(tensor.data[Tensor::kRank > 0 ? i * tensor.stride(Tensor::kRank - 1) : 0]);
  }
};
template <class Tensor>
LATHE_DEVICE Stored<Tensor> stored(const Tensor& tensor) {
  return {tensor};
}

LATHE_DEVICE long clamp_to(long value, long low, long high) { return value < low ? low : value > high ? high : value; }
