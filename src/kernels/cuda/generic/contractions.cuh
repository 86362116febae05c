// SPDX-License-Identifier: Apache-2.0
// Sums of products, a thread per output element. W is double, or an integer type in which sums wrap.
#pragma once

#include "generic/element.cuh"

// a[batch..., m, k] and b[batch..., k, n], with the output's batch dims. A vector operand lacks m or n in the output.
template <bool kRow, bool kColumn, class W, class Fusion, class A, class B, class Out>
LATHE_DEVICE void matmul(const Fusion& fusion, const A& a, const B& b, const Out& out) {
  constexpr int kBatch = A::kRank - 2;
  for_each_element(out, [&](const auto& c) {
    long left[A::kRank], right[B::kRank];
    LATHE_UNROLL
    for (int i = 0; i < kBatch; ++i) left[i] = right[i] = c[i];
    left[kBatch] = kRow ? c[kBatch] : 0;
    right[kBatch + 1] = kColumn ? c[kBatch + (kRow ? 1 : 0)] : 0;
    W sum = 0;
    for (long k = 0; k < a.dim(kBatch + 1); ++k) {
      left[kBatch + 1] = right[kBatch] = k;
      sum += widen_to<W>(element(a, left)) * widen_to<W>(element(b, right));
    }
    put(fusion, out, c, sum);
  });
}

// x[rows..., k] times the matrix of weights[experts, k, n] ([experts, n, k] if kTransposed) that ids[rows...] names.
template <bool kTransposed, bool kStrict, class W, class Fusion, class X, class Weights, class Ids, class Out>
LATHE_DEVICE void expert_matmul(const Fusion& fusion, const X& x, const Weights& weights, const Ids& ids,
                                const Out& out) {
  constexpr int kRows = Out::kRank - 1, kInner = kTransposed ? 2 : 1;
  for_each_element(out, [&](const auto& c) {
    long row[Out::kRank], at[3] = {static_cast<long>(element(ids, c)), c[kRows], c[kRows]};
    LATHE_UNROLL
    for (int i = 0; i < kRows; ++i) row[i] = c[i];
    if (kStrict && at[0] < 0) at[0] += weights.dim(0);
    const bool exists = at[0] >= 0 && at[0] < weights.dim(0);
    W sum = 0;
    for (long k = 0; exists && k < x.dim(kRows); ++k) {
      row[kRows] = at[kInner] = k;
      sum += widen_to<W>(element(x, row)) * widen_to<W>(element(weights, at));
    }
    put(fusion, out, c, sum);
  });
}

// An operand of an einsum: strides(label) for the output's labels, then the summed ones.
template <class Tensor, class Strides>
struct Labelled {
  Tensor tensor;
  Strides strides;
};
template <class Tensor, class Strides>
LATHE_DEVICE Labelled<Tensor, Strides> labelled(const Tensor& tensor, const Strides& strides) {
  return {tensor, strides};
}
template <class W, class Operand, int N>
LATHE_DEVICE W factor(const Operand& operand, int labels, const long (&index)[N]) {
  long offset = 0;
  for (int i = 0; i < labels; ++i) offset += index[i] * operand.strides(i);
  return widen_to<W>(operand.tensor.data[offset]);
}
template <int kLabels, class W, class Fusion, class Extents, class Out, class... In>
LATHE_DEVICE void einsum(const Fusion& fusion, const Extents& extents, const Out& out, const In&... in) {
  for_each_element(out, [&](const auto& c) {
    long index[kLabels > 0 ? kLabels : 1] = {}, count = 1;
    for (int i = 0; i < Out::kRank; ++i) index[i] = c[i];
    for (int i = Out::kRank; i < kLabels; ++i) count *= extents(i);
    W sum = 0;
    for (long flat = 0; flat < count; ++flat) {
      long rest = flat;
      for (int i = kLabels - 1; i >= Out::kRank; --i) {
        index[i] = rest % extents(i);
        rest /= extents(i);
      }
      W product = 1;
      ((product *= factor<W>(in, kLabels, index)), ...);
      sum += product;
    }
    put(fusion, out, c, sum);
  });
}
