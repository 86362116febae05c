// SPDX-License-Identifier: Apache-2.0
// Pointwise ops of any element type: kernel "elementwise".
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "ops/quantization.h"

namespace lathe::cpu {
namespace {

using elementwise::ElementwiseParams;
using elementwise::Function;

// By the numbers of the ops.
constexpr Function kUnary[] = {
#define LATHE_UNARY(name, traits, formula, integers) Function::name,
#include "base/scalars.def"
};
constexpr Function kBinary[] = {
#define LATHE_BINARY(name, traits, formula, integers) Function::name,
#include "base/scalars.def"
};
constexpr Function kActivations[] = {
#define LATHE_ACTIVATION(name, parameters, formula) Function::name,
#include "base/scalars.def"
};
Function function_of(UnaryOp op) { return kUnary[static_cast<size_t>(op)]; }
Function function_of(ElementwiseOp op) { return kBinary[static_cast<size_t>(op)]; }
Function function_of(ActivationOp op) { return kActivations[static_cast<size_t>(op)]; }

// A bound of clip as an integer: fractions round inwards, bounds outside the range stop at its ends.
template <class T>
int64_t integer_bound(double bound, bool lower) {
  const double whole = lower ? std::ceil(bound) : std::floor(bound);
  if (whole >= std::ldexp(1.0, std::is_signed_v<T> ? 63 : 64))
    return static_cast<int64_t>(std::numeric_limits<T>::max());
  if (!(whole > static_cast<double>(std::numeric_limits<T>::min())))
    return static_cast<int64_t>(std::numeric_limits<T>::min());
  return static_cast<int64_t>(static_cast<T>(whole));
}

// Params of the kernel; nothing where it has no function for the op.
std::optional<ElementwiseParams> params_of(const Problem& problem) {
  const auto record = [](Function function, int64_t x = 0, int64_t y = 0) { return ElementwiseParams{function, x, y}; };
  if (!problem.attributes) return std::nullopt;
  switch (problem.attributes->kind()) {
    case OpKind::elementwise:
      return record(function_of(problem.attrs<ElementwiseAttrs>().op));
    case OpKind::unary: {
      const auto& attrs = problem.attrs<UnaryAttrs>();
      if (attrs.op == UnaryOp::is_inf) return record(Function::is_inf, attrs.detect_negative, attrs.detect_positive);
      return record(function_of(attrs.op));
    }
    case OpKind::cast:
      return record(Function::cast);
    case OpKind::select:
      return record(Function::select);
    case OpKind::quantize: {
      const auto& attrs = problem.attrs<QuantizeAttrs>();
      const std::optional<IntegerRange> range = quantized_range(attrs.to);
      if (!range || !attrs.blocks.empty()) return std::nullopt;
      return record(Function::quantize, static_cast<int64_t>(range->low), static_cast<int64_t>(range->high));
    }
    case OpKind::dequantize:
      if (!problem.attrs<DequantizeAttrs>().blocks.empty()) return std::nullopt;
      return record(Function::dequantize);
    case OpKind::prelu:
      if (!is_floating(problem.inputs[0].dtype)) return std::nullopt;
      return record(Function::prelu);
    case OpKind::activation: {
      const auto& attrs = problem.attrs<ActivationAttrs>();
      const DType type = problem.inputs[0].dtype;
      if (is_floating(type))
        return record(function_of(attrs.op), std::bit_cast<int64_t>(attrs.alpha), std::bit_cast<int64_t>(attrs.beta));
      const bool clips = attrs.op == ActivationOp::relu || attrs.op == ActivationOp::clip;
      if (!clips) return std::nullopt;
      const double low = attrs.op == ActivationOp::relu ? 0 : attrs.alpha;
      const double high = attrs.op == ActivationOp::relu ? HUGE_VAL : attrs.beta;
      if (type == DType::u64)
        return record(Function::clip_integers, integer_bound<uint64_t>(low, true),
                      integer_bound<uint64_t>(high, false));
      return record(Function::clip_integers, integer_bound<int64_t>(low, true), integer_bound<int64_t>(high, false));
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

Matched match_elementwise(const Problem& problem) {
  const std::optional<ElementwiseParams> params = params_of(problem);
  if (!params) return refuse("no function of elements");
  return match_root(problem, *params, all_inputs(problem));
}

}  // namespace lathe::cpu
