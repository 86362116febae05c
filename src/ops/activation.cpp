// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/pointwise.h"

namespace lathe {
namespace {

using Op = ActivationOp;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }  // log(1 + e^x)
double clamp(double x, double low, double high) {
  return x < low ? std::min(low, high) : x > high ? high : x;
}  // keeps NaN

double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

}  // namespace

double activate(Op op, double x, double alpha, double beta) {
  switch (op) {
    case Op::relu:
      return x < 0 ? 0 : x;
    case Op::sigmoid:
      return sigmoid(x);
    case Op::tanh:
      return std::tanh(x);
    case Op::leaky_relu:
      return x < 0 ? alpha * x : x;
    case Op::elu:
      return x < 0 ? alpha * std::expm1(x) : x;
    case Op::selu:
      return beta * (x > 0 ? x : alpha * std::expm1(x));
    case Op::softsign:
      return x / (1 + std::fabs(x));
    case Op::softplus:
      return alpha * softplus(beta * x);
    case Op::clip:
      return clamp(x, alpha, beta);
    case Op::hard_sigmoid:
      return clamp(alpha * x + beta, 0, 1);
    case Op::scaled_tanh:
      return alpha * std::tanh(beta * x);
    case Op::thresholded_relu:
      return x > alpha ? x : 0;
    case Op::gelu_erf:
      return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    case Op::gelu_tanh:
      return gelu_tanh(x);
    case Op::celu:
      return x < 0 ? alpha * std::expm1(x / alpha) : x;
    case Op::hard_swish:
      return x * clamp(x / 6 + 0.5, 0, 1);
    case Op::silu:
      return x * sigmoid(x);
    case Op::mish:
      return x * std::tanh(softplus(x));
    case Op::shrink:
      return x < -alpha ? x + beta : x > alpha ? x - beta : std::isnan(x) ? x : 0;
  }
  return 0;
}

namespace {

// A bound of clip as an integer of the range of T: fractions round inwards, bounds outside the range stop at its ends.
template <class T>
T integer_bound(double bound, bool lower) {
  const double whole = lower ? std::ceil(bound) : std::floor(bound);
  if (whole >= std::ldexp(1.0, std::is_signed_v<T> ? 63 : 64)) return std::numeric_limits<T>::max();
  if (!(whole > static_cast<double>(std::numeric_limits<T>::min()))) return std::numeric_limits<T>::min();
  return static_cast<T>(whole);
}

template <class T>
void clip_integers(const Tensor& x, Tensor& y, double low, double high) {
  const T min = integer_bound<T>(low, true), max = integer_bound<T>(high, false);
  map_one<int64_t>(x, y,
                   [=](int64_t v) { return static_cast<int64_t>(std::min(std::max(static_cast<T>(v), min), max)); });
}

}  // namespace

Result<> infer_activation(InferContext& context) {
  const Op op = context.attrs<ActivationAttrs>().op;
  if (op == Op::relu || op == Op::clip || op == Op::shrink)
    LATHE_TRY(require_numeric(context, 0));
  else
    LATHE_TRY(require_floating(context, 0));
  context.set(0, context.dtype(0), context.shape(0));
  const std::vector<Expr>* elements = context.elements(0);
  if (!elements || op != Op::relu || !may_hold_symbols(context.dtype(0))) return {};
  std::vector<Expr> out;
  for (const Expr& element : *elements) out.push_back(max(element, 0));
  context.set_elements(0, std::move(out));
  return {};
}

Result<> eval_activation(EvalContext& context) {
  const ActivationAttrs& attrs = context.attrs<ActivationAttrs>();
  const Tensor& x = context.input(0);
  Tensor& y = context.output(0);
  if (is_floating(x.dtype()) || attrs.op == Op::shrink) {
    map_one<double>(x, y, [&](double v) { return activate(attrs.op, v, attrs.alpha, attrs.beta); });
    return {};
  }
  const double low = attrs.op == Op::relu ? 0 : attrs.alpha;
  const double high = attrs.op == Op::relu ? HUGE_VAL : attrs.beta;
  if (x.dtype() == DType::u64)
    clip_integers<uint64_t>(x, y, low, high);
  else
    clip_integers<int64_t>(x, y, low, high);
  return {};
}

}  // namespace lathe
