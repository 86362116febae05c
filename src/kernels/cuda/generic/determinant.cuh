// SPDX-License-Identifier: Apache-2.0
// Determinants: a thread per matrix, by elimination with partial pivoting. `work` has a double for each element of x.
#pragma once

#include "generic/element.cuh"

LATHE_DEVICE double eliminate(double* a, long n) {
  double product = 1;
  for (long k = 0; k < n; ++k) {
    long pivot = k;
    for (long i = k + 1; i < n; ++i)
      if (fabs(a[i * n + k]) > fabs(a[pivot * n + k])) pivot = i;
    if (pivot != k) {
      product = -product;
      for (long j = k; j < n; ++j) {
        const double held = a[k * n + j];
        a[k * n + j] = a[pivot * n + j];
        a[pivot * n + j] = held;
      }
    }
    product *= a[k * n + k];
    if (a[k * n + k] == 0) break;
    for (long i = k + 1; i < n; ++i) {
      const double factor = a[i * n + k] / a[k * n + k];
      for (long j = k + 1; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
    }
  }
  return product;
}

template <class X, class Out>
LATHE_DEVICE void determinant(const X& x, double* work, const Out& out) {
  constexpr int kBatch = X::kRank - 2;
  const long n = x.dim(kBatch);
  for_each(volume_of(out), [&](long matrix) {
    long c[kCoordinates<Out>], at[X::kRank];
    unflatten(out, matrix, c);
    for (int d = 0; d < kBatch; ++d) at[d] = c[d];
    double* const a = work + matrix * n * n;
    for (long i = 0; i < n * n; ++i) {
      at[kBatch] = i / n;
      at[kBatch + 1] = i % n;
      a[i] = widen(element(x, at));
    }
    element(out, c) = narrow<typename Out::Type>(eliminate(a, n));
  });
}
