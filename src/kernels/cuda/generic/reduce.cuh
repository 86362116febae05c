// SPDX-License-Identifier: Apache-2.0
// Reductions over any axes: a block per result. The threads take every 128th element, then halve what they have.
#pragma once

#include "generic/element.cuh"

constexpr int kReduceThreads = 128;

template <class A>
struct Reduction {
  using Op = typename A::op_type;
  static constexpr bool kMax = A::op == Op::max || A::op == Op::log_sum_exp, kMin = A::op == Op::min;

  template <class W>  // the ends of W's range; for integers those of type T
  LATHE_DEVICE_MEMBER static W start(W lowest, W highest) {
    if constexpr (A::op == Op::prod) return 1;
    if constexpr (A::op == Op::max) return lowest;
    if constexpr (A::op == Op::min) return highest;
    return 0;
  }
  template <class W>
  LATHE_DEVICE_MEMBER static W join(W a, W b) {  // of two partial results
    if constexpr (A::op == Op::max) return a != a || a > b ? a : b;
    if constexpr (A::op == Op::min) return a != a || a < b ? a : b;
    if constexpr (is_same<W, double>) {
      if constexpr (A::op == Op::prod) return a * b;
      return a + b;
    } else {
      if constexpr (A::op == Op::prod) return static_cast<W>(static_cast<uint64>(a) * static_cast<uint64>(b));
      return static_cast<W>(static_cast<uint64>(a) + static_cast<uint64>(b));
    }
  }
  template <class W>
  LATHE_DEVICE_MEMBER static W term(W x) {  // what an element adds
    if constexpr (is_same<W, double>) {
      if constexpr (A::op == Op::l1) return fabs(x);
      if constexpr (A::op == Op::l2 || A::op == Op::sum_square) return x * x;
    } else {
      if constexpr (A::op == Op::l1) return x < 0 ? static_cast<W>(-static_cast<uint64>(x)) : x;
      if constexpr (A::op == Op::sum_square) return static_cast<W>(static_cast<uint64>(x) * static_cast<uint64>(x));
    }
    return x;
  }
  template <class W>
  LATHE_DEVICE_MEMBER static W finish(W total, long count) {
    if constexpr (is_same<W, double>) {
      if constexpr (A::op == Op::mean) return total / static_cast<double>(count);
      if constexpr (A::op == Op::l2) return sqrt(total);
      if constexpr (A::op == Op::log_sum) return log(total);
    } else {
      if constexpr (A::op == Op::mean) return count == 0 ? W{0} : total / static_cast<W>(count);
    }
    return total;
  }
};

// The threads' values joined; every thread gets the result.
template <class W, class Join>
LATHE_DEVICE W join_threads(W value, Join join) {
  W* shared = reinterpret_cast<W*>(dynamic_shared());
  barrier();
  shared[thread_x()] = value;
  for (int half = kReduceThreads / 2; half > 0; half /= 2) {
    barrier();
    if (thread_x() < half) shared[thread_x()] = join(shared[thread_x()], shared[thread_x() + half]);
  }
  barrier();
  return shared[0];
}

template <class W, class T>
LATHE_DEVICE W lowest_of() {
  if constexpr (is_same<W, double>)
    return -infinite();
  else
    return is_same<T, bool> ? W{0} : static_cast<W>(Limits<T>::kMin);
}
template <class W, class T>
LATHE_DEVICE W highest_of() {
  if constexpr (is_same<W, double>)
    return infinite();
  else
    return is_same<T, bool> ? W{1} : static_cast<W>(Limits<T>::kMax);
}

// Bit d of kMask: dimension d of x is reduced. kKept: those dimensions stay, with extent 1.
template <class A, unsigned kMask, bool kKept, class W, class Fusion, class X, class Out>
LATHE_DEVICE void reduce(const Fusion& fusion, const X& x, const Out& out) {
  using R = Reduction<A>;
  using T = typename X::Type;
  long c[kCoordinates<Out>], base[kCoordinates<X>] = {}, count = 1;
  unflatten(out, block_x(), c);
  int next = 0;
  LATHE_UNROLL
  for (int d = 0; d < X::kRank; ++d) {
    const bool reduced = kMask >> d & 1;
    if (reduced) count *= x.dim(d);
    if (!reduced) base[d] = c[next];
    if (!reduced || kKept) ++next;
  }
  const auto at = [&](long i) {
    LATHE_UNROLL
    for (int d = X::kRank - 1; d >= 0; --d) {
      if (!(kMask >> d & 1)) continue;
      base[d] = i % x.dim(d);
      i /= x.dim(d);
    }
    return widen_to<W>(element(x, base));
  };
  const auto join = [](W a, W b) { return R::join(a, b); };
  dependency_wait();
  W total = R::start(lowest_of<W, T>(), highest_of<W, T>());
  if constexpr (A::op == A::op_type::log_sum_exp) {
    double largest = lowest_of<double, double>();
    const auto larger = [](double a, double b) { return a != a || a > b ? a : b; };
    for (long i = thread_x(); i < count; i += kReduceThreads) largest = larger(largest, at(i));
    largest = join_threads(largest, larger);
    if (isinf(largest)) largest = 0;
    for (long i = thread_x(); i < count; i += kReduceThreads) total += exp(at(i) - largest);
    total = log(join_threads(total, join)) + largest;
  } else {
    for (long i = thread_x(); i < count; i += kReduceThreads) total = join(total, R::term(at(i)));
    total = R::finish(join_threads(total, join), count);
  }
  if (thread_x() == 0) put(fusion, out, c, total);
}
