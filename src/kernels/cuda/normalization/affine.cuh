// SPDX-License-Identifier: Apache-2.0
// The scale and bias behind a normalisation.
#pragma once

#include "lib/tensor.cuh"

struct Absent {};  // stands for a scale or bias that there is none of

template <class Scale, class Bias>
struct Affine {
  Scale scale;
  Bias bias;

  // Brings what apply() will read to the last cache.
  template <int R>
  LATHE_DEVICE_MEMBER void prefetch(const long (&c)[R]) const {
    if constexpr (!is_same<Scale, Absent>) prefetch_line(scale.data + offset_of(scale, c));
    if constexpr (!is_same<Bias, Absent>) prefetch_line(bias.data + offset_of(bias, c));
  }

  // v[i]: the element at coordinates c with c[D] + i.
  template <int D, int W, int R>
  LATHE_DEVICE_MEMBER void apply(float (&v)[W], const long (&c)[R]) const {
    float operand[W];
    if constexpr (!is_same<Scale, Absent>) {
      load<D, W>(scale, c, operand, W);
      LATHE_UNROLL
      for (int i = 0; i < W; ++i) v[i] *= operand[i];
    }
    if constexpr (!is_same<Bias, Absent>) {
      load<D, W>(bias, c, operand, W);
      LATHE_UNROLL
      for (int i = 0; i < W; ++i) v[i] += operand[i];
    }
  }
};
