// SPDX-License-Identifier: Apache-2.0
// Activations, in doubles.
#include <cmath>
#include <cstring>

#include "kernels/cpu/elementwise/elementwise.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

using elementwise::Function;

constexpr double kSqrt2 = 1.41421356237309504880, kSqrt2OverPi = 0.79788456080286535588;

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double soft_plus(double x) { return (x > 0 ? x : x == x ? 0 : x) + std::log1p(std::exp(-std::fabs(x))); }
// Keeps NaN.
double clamp(double x, double low, double high) {
  const double least = low < high ? low : high;
  return x < low ? least : x > high ? high : x;
}

template <class F>
void each(const double* x, int64_t count, double* y, F f) {
  for (int64_t i = 0; i < count; ++i) y[i] = f(x[i]);
}

double as_double(int64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace

void activate_elements(const elementwise::Call& call, const void* const* inputs, int64_t n, void* result) {
  const auto* x = static_cast<const double*>(inputs[0]);
  auto* y = static_cast<double*>(result);
  const double alpha = as_double(call.x), beta = as_double(call.y);
  switch (call.function) {
    case Function::prelu: {
      const auto* slope = static_cast<const double*>(inputs[1]);
      for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0 ? slope[i] * x[i] : x[i];
      return;
    }
    case Function::activation_relu:
      return each(x, n, y, [](double v) { return v < 0 ? 0 : v; });
    case Function::activation_sigmoid:
      return each(x, n, y, logistic);
    case Function::activation_tanh:
      return each(x, n, y, [](double v) { return std::tanh(v); });
    case Function::activation_leaky_relu:
      return each(x, n, y, [=](double v) { return v < 0 ? alpha * v : v; });
    case Function::activation_elu:
      return each(x, n, y, [=](double v) { return v < 0 ? alpha * std::expm1(v) : v; });
    case Function::activation_selu:
      return each(x, n, y, [=](double v) { return beta * (v > 0 ? v : alpha * std::expm1(v)); });
    case Function::activation_softsign:
      return each(x, n, y, [](double v) { return v / (1 + std::fabs(v)); });
    case Function::activation_softplus:
      return each(x, n, y, [=](double v) { return alpha * soft_plus(beta * v); });
    case Function::activation_clip:
      return each(x, n, y, [=](double v) { return clamp(v, alpha, beta); });
    case Function::activation_hard_sigmoid:
      return each(x, n, y, [=](double v) { return clamp(alpha * v + beta, 0, 1); });
    case Function::activation_scaled_tanh:
      return each(x, n, y, [=](double v) { return alpha * std::tanh(beta * v); });
    case Function::activation_thresholded_relu:
      return each(x, n, y, [=](double v) { return v > alpha ? v : 0; });
    case Function::activation_gelu_erf:
      return each(x, n, y, [](double v) { return 0.5 * v * (1 + std::erf(v / kSqrt2)); });
    case Function::activation_gelu_tanh:
      return each(x, n, y,
                  [](double v) { return 0.5 * v * (1 + std::tanh(kSqrt2OverPi * (v + 0.044715 * v * v * v))); });
    case Function::activation_celu:
      return each(x, n, y, [=](double v) { return v < 0 ? alpha * std::expm1(v / alpha) : v; });
    case Function::activation_hard_swish:
      return each(x, n, y, [](double v) { return v * clamp(v / 6 + 0.5, 0, 1); });
    case Function::activation_silu:
      return each(x, n, y, [](double v) { return v * logistic(v); });
    case Function::activation_mish:
      return each(x, n, y, [](double v) { return v * std::tanh(soft_plus(v)); });
    case Function::activation_shrink:
      return each(x, n, y, [=](double v) { return v < -alpha ? v + beta : v > alpha ? v - beta : v != v ? v : 0; });
    default:
      return;
  }
}

}  // namespace lathe::cpu::LATHE_ISA
