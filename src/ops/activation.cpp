// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/scalar_math.h"
#include "ops/pointwise.h"

namespace lathe {
namespace {

using Op = ActivationOp;

}  // namespace

double activate(Op op, double a, double x, double y) {
  using real = double;
  switch (op) {
#define LATHE_ACTIVATION(name, parameters, formula) \
  case Op::name:                                    \
    return formula;
#include "base/scalars.def"
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
  const std::vector<Expr>* elements = context.partial_elements(0);
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
