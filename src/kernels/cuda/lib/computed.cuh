// SPDX-License-Identifier: Apache-2.0
// Values of a tensor's elements, which a program may compute as they are read.
#pragma once

#include "lib/tensor.cuh"

// A tensor each of whose elements stands for what the program makes of it. The program's coordinates are the tensor's.
template <class Tensor, class Program>
struct Computed : Tensor {
  Program program;
};

// W elements at c along dimension D, as float, or as double or a 64-bit integer where those are computed with.
template <int D, int W, class Tensor, int R>
LATHE_DEVICE void load_values(const Tensor& tensor, const long (&c)[R], float (&v)[W]) {
  load<D, W>(tensor, c, v, W);
}
template <int D, int W, class Tensor, class Program, int R>
LATHE_DEVICE void load_values(const Computed<Tensor, Program>& tensor, const long (&c)[R], float (&v)[W]) {
  load<D, W>(tensor, c, v, W);
  tensor.program.template apply<D, W>(v, c, W);
}
template <int D, int W, class Tensor, int R, class Value>
LATHE_DEVICE void load_values(const Tensor& tensor, const long (&c)[R], Value (&v)[W]) {
  const auto* from = tensor.data + offset_of(tensor, c);
  LATHE_UNROLL
  for (int i = 0; i < W; ++i) {
    if constexpr (is_same<Value, double>)
      v[i] = to_double(from[i * tensor.stride(D)]);
    else
      v[i] = static_cast<Value>(from[i * tensor.stride(D)]);
  }
}
