// SPDX-License-Identifier: Apache-2.0
// Ops on the lines along one axis: a thread per line, which reads as in(i) and writes as out(i).
#pragma once

#include "generic/element.cuh"

template <class Tensor>
struct Line {
  typename Tensor::Type* data;
  long stride;
  LATHE_DEVICE_MEMBER typename Tensor::Type& operator()(long i) const { return data[i * stride]; }
};
template <class Tensor>
LATHE_DEVICE Line<Tensor> line_of(const Tensor& tensor, int axis, long index) {
  long c[kCoordinates<Tensor>];
  line_coordinates(tensor, axis, index, c);
  long stride = 0;
  LATHE_UNROLL
  for (int i = 0; i < Tensor::kRank; ++i)
    if (i == axis) stride = tensor.stride(i);
  return {tensor.data + offset_of(tensor, c), stride};
}

template <int kAxis, bool kLog, class X, class Out>
LATHE_DEVICE void softmax(const X& x, const Out& out) {
  for_each(count_lines(out, kAxis), [&](long index) {
    const Line<X> from = line_of(x, kAxis, index);
    const Line<Out> to = line_of(out, kAxis, index);
    const long count = x.dim(kAxis);
    double largest = -infinite(), sum = 0;
    for (long i = 0; i < count; ++i)
      if (!(widen(from(i)) <= largest)) largest = widen(from(i));
    for (long i = 0; i < count; ++i) sum += exp(widen(from(i)) - largest);
    for (long i = 0; i < count; ++i) {
      const double value = widen(from(i)) - largest;
      to(i) = narrow<typename Out::Type>(kLog ? value - log(sum) : exp(value) / sum);
    }
  });
}

// NaN is the largest.
template <class W>
LATHE_DEVICE bool above(W a, W b) {
  return a != a ? b == b : a > b;
}

template <int kAxis, class X, class Out>
LATHE_DEVICE void hardmax(const X& x, const Out& out) {
  for_each(count_lines(out, kAxis), [&](long index) {
    const Line<X> from = line_of(x, kAxis, index);
    const Line<Out> to = line_of(out, kAxis, index);
    long best = 0;
    for (long i = 1; i < x.dim(kAxis); ++i)
      if (above(widen(from(i)), widen(from(best)))) best = i;
    for (long i = 0; i < x.dim(kAxis); ++i) to(i) = narrow<typename Out::Type>(i == best ? 1.0 : 0.0);
  });
}

// NaN beats all, on the smallest side too; of equals (or NaNs) the first or the last.
template <class A, int kAxis, class X, class Out>
LATHE_DEVICE void arg_reduce(const X& x, const Out& out) {
  for_each_element(out, [&](const auto& c) {
    long from[kCoordinates<X>], best = 0;
    LATHE_UNROLL
    for (int i = 0; i < X::kRank; ++i) from[i] = i == kAxis ? 0 : c[A::keepdims || i < kAxis ? i : i - 1];
    auto top = widen(element(x, from));
    for (long i = 1; i < x.dim(kAxis); ++i) {
      from[kAxis] = i;
      const auto value = widen(element(x, from));
      const bool top_is_nan = top != top, is_nan = value != value;
      bool replaces = A::largest ? value > top : value < top;
      if (value == top) replaces = A::select_last;
      if (is_nan) replaces = true;
      if (top_is_nan) replaces = is_nan && A::select_last;
      if (!replaces) continue;
      best = i;
      top = value;
    }
    element(out, c) = best;
  });
}

// The i-th best is the best of those that come after the one before it.
template <class A, int kAxis, class X, class Values, class Indices>
LATHE_DEVICE void topk(const X& x, const Values& values, const Indices& indices) {
  for_each(count_lines(x, kAxis), [&](long index) {
    const Line<X> from = line_of(x, kAxis, index);
    const Line<Values> to = line_of(values, kAxis, index);
    const Line<Indices> where = line_of(indices, kAxis, index);
    // Whether position i comes before position j.
    const auto before = [&](long i, long j) {
      const auto a = widen(from(i)), b = widen(from(j));
      if (above(a, b)) return A::largest;
      if (above(b, a)) return !A::largest;
      return i < j;
    };
    long last = -1;
    for (long k = 0; k < values.dim(kAxis); ++k) {
      long best = -1;
      for (long i = 0; i < x.dim(kAxis); ++i)
        if ((last < 0 || before(last, i)) && (best < 0 || before(i, best))) best = i;
      to(k) = from(best);
      where(k) = best;
      last = best;
    }
  });
}

template <class A, class W, class X, class Out>
LATHE_DEVICE void cumulative_line(const Line<X>& from, const Line<Out>& to, long count) {
  constexpr bool kSum = A::op == A::op_type::sum;
  W total = kSum ? 0 : 1;
  for (long i = 0; i < count; ++i) {
    const long at = A::reverse ? count - 1 - i : i;
    const W value = widen_to<W>(from(at)), next = kSum ? total + value : total * value;
    to(at) = narrow<typename Out::Type>(A::exclusive ? total : next);
    total = next;
  }
}
// The axis may be known to device memory only: then there are threads for the most lines that there can be.
template <class A, class W, class X, class Out, class Axis>
LATHE_DEVICE void cumulative(const X& x, const Out& out, const Axis& which) {
  for_each(volume_of(x), [&](long index) {
    const long given = which(0), axis = given < 0 ? given + X::kRank : given;
    if (index < count_lines(x, static_cast<int>(axis))) {
      const int a = static_cast<int>(axis);
      long count = 0;
      for (int i = 0; i < X::kRank; ++i)
        if (i == a) count = x.dim(i);
      cumulative_line<A, W>(line_of(x, a, index), line_of(out, a, index), count);
    }
  });
}

template <int kAxis, int kPower, class X, class Out>
LATHE_DEVICE void lp_normalization(const X& x, const Out& out) {
  for_each(count_lines(out, kAxis), [&](long index) {
    const Line<X> from = line_of(x, kAxis, index);
    const Line<Out> to = line_of(out, kAxis, index);
    double sum = 0;
    for (long i = 0; i < x.dim(kAxis); ++i) sum += pow(fabs(widen(from(i))), static_cast<double>(kPower));
    const double norm = pow(sum, 1 / static_cast<double>(kPower));
    for (long i = 0; i < x.dim(kAxis); ++i)
      to(i) = narrow<typename Out::Type>(norm != 0 ? widen(from(i)) / norm : widen(from(i)));
  });
}
