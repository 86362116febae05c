// SPDX-License-Identifier: Apache-2.0
// Tensors whose elements a program computes as they are read.
#pragma once

#include "lib/tensor.cuh"

// Each element of the tensor stands for what the program makes of it. The program's coordinates are the tensor's.
template <class Tensor, class Program>
struct Computed : Tensor {
  Program program;
};

// The first `count` of W elements along dimension D; the others may be anything.
template <int D, int W, class Tensor, class Program, int N>
LATHE_DEVICE void load(const Computed<Tensor, Program>& tensor, const long (&c)[N], float (&v)[W], int count) {
  load<D, W>(static_cast<const Tensor&>(tensor), c, v, count);
  tensor.program.template apply<D, W>(v, c, count);
}
