// SPDX-License-Identifier: Apache-2.0
// Normalisations in double: a thread per element where statistics are given, per group of elements where not.
#pragma once

#include "generic/element.cuh"

struct MeanAndVariance {
  double mean, variance;
};

// Of value(i) for i in [0, count).
template <class F>
LATHE_DEVICE MeanAndVariance moments_of(long count, F value) {
  MeanAndVariance moments{0, 0};
  for (long i = 0; i < count; ++i) moments.mean += value(i);
  moments.mean /= static_cast<double>(count);
  for (long i = 0; i < count; ++i) {
    const double off = value(i) - moments.mean;
    moments.variance += off * off;
  }
  moments.variance /= static_cast<double>(count);
  return moments;
}

template <class Tensor>
LATHE_DEVICE double channel(const Tensor& tensor, long c) {
  return widen(tensor.data[c * tensor.stride(0)]);
}

template <class Fusion, class X, class Scale, class Bias, class Mean, class Variance, class Out>
LATHE_DEVICE void batch_normalization(const Fusion& fusion, const X& x, const Scale& scale, const Bias& bias,
                                      const Mean& mean, const Variance& variance, const Out& out, double epsilon) {
  for_each_element(out, [&](const auto& c) {
    const long k = X::kRank < 2 ? 0 : c[1 % kCoordinates<X>];
    const double factor = channel(scale, k) / sqrt(channel(variance, k) + epsilon);
    put(fusion, out, c, (widen(element(x, c)) - channel(mean, k)) * factor + channel(bias, k));
  });
}

// Mean and variance of each channel into the workspace: [2][channels].
template <class X>
LATHE_DEVICE void channel_statistics(const X& x, double* statistics) {
  const long channels = X::kRank < 2 ? 1 : x.dim(1 % kCoordinates<X>);
  for_each(channels, [&](long k) {
    long c[kCoordinates<X>];
    const auto value = [&](long i) {
      if constexpr (X::kRank < 2)
        c[0] = i;
      else {
        line_coordinates(x, 1, i, c);
        c[1] = k;
      }
      return widen(element(x, c));
    };
    const MeanAndVariance moments = moments_of(X::kRank < 2 ? x.dim(0) : count_lines(x, 1), value);
    statistics[k] = moments.mean;
    statistics[channels + k] = moments.variance;
  });
}
// Running values: old * momentum + new * (1 - momentum).
template <class Old, class Out>
LATHE_DEVICE void update_running(const Old& old, const Out& out, const double* current, double momentum) {
  for_each_element(out, [&](const auto& c) {
    element(out, c) = narrow<typename Out::Type>(widen(element(old, c)) * momentum + current[c[0]] * (1 - momentum));
  });
}
template <class X, class Scale, class Bias, class Out>
LATHE_DEVICE void normalize_channels(const X& x, const Scale& scale, const Bias& bias, const Out& out,
                                     const double* statistics, double epsilon) {
  const long channels = X::kRank < 2 ? 1 : x.dim(1 % kCoordinates<X>);
  for_each_element(out, [&](const auto& c) {
    const long k = X::kRank < 2 ? 0 : c[1 % kCoordinates<X>];
    const double factor = channel(scale, k) / sqrt(statistics[channels + k] + epsilon);
    element(out, c) = narrow<typename Out::Type>((widen(element(x, c)) - statistics[k]) * factor + channel(bias, k));
  });
}

// x[N, C, ...] over groups of channels.
template <class Fusion, class X, class Scale, class Bias, class Out>
LATHE_DEVICE void group_normalization(const Fusion& fusion, const X& x, const Scale& scale, const Bias& bias,
                                      const Out& out, long groups, double epsilon) {
  const long per_group = x.dim(1) / groups;
  for_each(x.dim(0) * groups, [&](long index) {
    const long n = index / groups, first = index % groups * per_group;
    long count = per_group, c[X::kRank];
    for (int i = 2; i < X::kRank; ++i) count *= x.dim(i);
    const auto locate = [&](long i) {
      for (int d = X::kRank - 1; d >= 2; --d) {
        c[d] = i % x.dim(d);
        i /= x.dim(d);
      }
      c[0] = n;
      c[1] = first + i;
    };
    const MeanAndVariance moments = moments_of(count, [&](long i) {
      locate(i);
      return widen(element(x, c));
    });
    const double factor = 1 / sqrt(moments.variance + epsilon);
    for (long i = 0; i < count; ++i) {
      locate(i);
      const double value = (widen(element(x, c)) - moments.mean) * factor;
      put(fusion, out, c, value * channel(scale, c[1]) + channel(bias, c[1]));
    }
  });
}

// Rows: the dimensions from kAxis on. Scale and bias have x's dims. `finish(row coordinates, moments)` takes what the
// row's statistics are wanted for.
template <int kAxis, bool kRms, class Fusion, class X, class Scale, class Bias, class Out, class Finish>
LATHE_DEVICE void row_normalization(const Fusion& fusion, const X& x, const Scale& scale, const Bias& bias,
                                    const Out& out, double epsilon, const Finish& finish) {
  long rows = 1, count = 1;
  for (int i = 0; i < X::kRank; ++i) (i < kAxis ? rows : count) *= x.dim(i);
  for_each(rows, [&](long row) {
    long c[kCoordinates<X>] = {};
    for (int i = kAxis - 1; i >= 0; --i) {
      c[i] = row % x.dim(i);
      row /= x.dim(i);
    }
    const auto locate = [&](long i) {
      for (int d = X::kRank - 1; d >= kAxis; --d) {
        c[d] = i % x.dim(d);
        i /= x.dim(d);
      }
    };
    const auto value = [&](long i) {
      locate(i);
      return widen(element(x, c));
    };
    MeanAndVariance moments{0, 0};
    if constexpr (kRms) {
      for (long i = 0; i < count; ++i) moments.variance += value(i) * value(i);
      moments.variance /= static_cast<double>(count);
    } else {
      moments = moments_of(count, value);
    }
    const double factor = 1 / sqrt(moments.variance + epsilon);
    for (long i = 0; i < count; ++i) {
      const double normal = (value(i) - moments.mean) * factor;
      put(fusion, out, c, normal * widen(element(scale, c)) + bias(c));
    }
    for (int d = kAxis; d < X::kRank; ++d) c[d] = 0;
    finish(c, moments.mean, factor);
  });
}
struct NoBias {
  template <int N>
  LATHE_DEVICE_MEMBER double operator()(const long (&)[N]) const {
    return 0;
  }
};
template <class Tensor>
struct RowBias {
  Tensor tensor;
  template <int N>
  LATHE_DEVICE_MEMBER double operator()(const long (&c)[N]) const {
    return widen(element(tensor, c));
  }
};
template <class Tensor>
LATHE_DEVICE RowBias<Tensor> row_bias(const Tensor& tensor) {
  return {tensor};
}

template <class X, class Out, class A>
LATHE_DEVICE void lrn(const X& x, const Out& out, const A&) {
  constexpr long kBelow = (A::size - 1) / 2, kAbove = A::size / 2;
  for_each_element(out, [&](const auto& c) {
    long at[kCoordinates<X>];
    for (int i = 0; i < X::kRank; ++i) at[i] = c[i];
    double sum = 0;
    const long first = c[1] - kBelow > 0 ? c[1] - kBelow : 0, last = c[1] + kAbove;
    for (at[1] = first; at[1] <= last && at[1] < x.dim(1); ++at[1])
      sum += widen(element(x, at)) * widen(element(x, at));
    const double scale = A::alpha() / static_cast<double>(A::size);
    element(out, c) = narrow<typename Out::Type>(widen(element(x, c)) / pow(A::bias() + scale * sum, A::beta()));
  });
}
