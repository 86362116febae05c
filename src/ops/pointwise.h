// SPDX-License-Identifier: Apache-2.0
// Loops of pointwise evaluations. Elements pass through blocks of double or int64, so that each function is compiled
// once and not once per element type; a result is rounded once, when it is stored.
#pragma once

#include <algorithm>
#include <array>

#include "ops/rules.h"

namespace lathe {

inline constexpr int64_t kPointwiseBlock = 256;

// x and y are the parameters of the activation's formula: alpha and beta.
double activate(ActivationOp op, double a, double x, double y);

// How blocks of T travel to and from tensors.
template <class T>
struct BlockAccess;
template <>
struct BlockAccess<double> {
  static void read(const Tensor& tensor, int64_t begin, std::span<double> values) {
    read_doubles(tensor, begin, values);
  }
  static void write(std::span<const double> values, int64_t begin, Tensor& tensor) {
    write_doubles(values, begin, tensor);
  }
};
template <>
struct BlockAccess<int64_t> {
  static void read(const Tensor& tensor, int64_t begin, std::span<int64_t> values) { read_ints(tensor, begin, values); }
  static void write(std::span<const int64_t> values, int64_t begin, Tensor& tensor) {
    write_ints(values, begin, tensor);
  }
};

// y[i] = f(x[i]).
template <class T, class F>
void map_one(const Tensor& x, Tensor& y, F f) {
  std::array<T, kPointwiseBlock> block;
  const int64_t count = x.volume();
  for (int64_t begin = 0; begin < count; begin += kPointwiseBlock) {
    const std::span<T> values(block.data(), static_cast<size_t>(std::min(kPointwiseBlock, count - begin)));
    BlockAccess<T>::read(x, begin, values);
    for (T& value : values) value = f(value);
    BlockAccess<T>::write(values, begin, y);
  }
}

// A run's elements: consecutive ones, or one element repeated.
template <class T>
void read_run(const Tensor& tensor, int64_t begin, int64_t step, std::span<T> values) {
  if (step == 1) return BlockAccess<T>::read(tensor, begin, values);
  BlockAccess<T>::read(tensor, begin, values.first(1));
  std::fill(values.begin() + 1, values.end(), values[0]);
}

// y = f(a, b), the operands broadcast to y's dims.
template <class T, class F>
void map_two(const Tensor& a, const Tensor& b, Tensor& y, F f) {
  std::array<T, kPointwiseBlock> left, right;
  const Dims operands[] = {a.dims(), b.dims()};
  Runs runs(y.dims(), operands);
  int64_t position = 0;
  for (int64_t run = 0; run < runs.total(); ++run, runs.next()) {
    for (int64_t begin = 0; begin < runs.count(); begin += kPointwiseBlock) {
      const auto size = static_cast<size_t>(std::min(kPointwiseBlock, runs.count() - begin));
      read_run(a, runs.offset(0) + begin * runs.step(0), runs.step(0), std::span(left.data(), size));
      read_run(b, runs.offset(1) + begin * runs.step(1), runs.step(1), std::span(right.data(), size));
      for (size_t i = 0; i < size; ++i) left[i] = f(left[i], right[i]);
      BlockAccess<T>::write({left.data(), size}, position, y);
      position += static_cast<int64_t>(size);
    }
  }
}

}  // namespace lathe
