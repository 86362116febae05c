// SPDX-License-Identifier: Apache-2.0
#include "passes/magnitude.h"

#include <algorithm>
#include <cmath>

#include "ops/rules.h"
#include "passes/match.h"

namespace lathe {
namespace {

using ir::Value;
using Op = ElementwiseOp;

constexpr int kMostSteps = 24;
constexpr int64_t kMostElements = 1 << 20;  // of a constant that is looked through

double largest_of(const Tensor& constant) {
  if (constant.volume() > kMostElements) return HUGE_VAL;
  double largest = 0;
  for (const double x : to_doubles(constant)) largest = std::isnan(x) ? HUGE_VAL : std::max(largest, std::fabs(x));
  return largest;
}

double largest_within(const Value* value, int steps);

// What is so far from 0 wraps in integers that do not reach so far, and is infinite in floats.
double within(DType dtype, double largest) {
  if (dtype == DType::boolean) return 1;
  if (is_integer(dtype)) {
    const bool is_unsigned = class_of(dtype) == DTypeClass::unsigned_int;
    const double end = std::ldexp(1.0, bits_of(dtype) - (is_unsigned ? 0 : 1));
    return is_unsigned || !(largest < end) ? end : largest;
  }
  const bool is_wide = dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f64;
  return is_wide || (dtype == DType::f16 && largest <= 65504) ? largest : HUGE_VAL;
}

double largest_of_result(const ir::Node& node, int steps) {
  const auto of = [&](size_t input) { return largest_within(node.input(input), steps); };
  if (node.is(OpKind::fill)) return std::fabs(node.attrs<FillAttrs>().value.at_double(0));
  if (node.is(OpKind::cast) || is(&node, UnaryOp::neg) || is(&node, UnaryOp::abs)) return of(0);
  if (is(&node, Op::add) || is(&node, Op::sub)) return of(0) + of(1);
  if (is(&node, Op::mul)) return of(0) * of(1);
  if (is(&node, Op::min) || is(&node, Op::max)) return std::max(of(0), of(1));
  const std::vector<const Value*> operands = unchanged_operands(node);
  if (operands.empty()) return HUGE_VAL;
  double largest = 0;
  for (const Value* operand : operands) largest = std::max(largest, largest_within(operand, steps));
  return largest;
}

double largest_within(const Value* value, int steps) {
  if (value->constant()) return largest_of(*value->constant());
  const double largest = value->producer() && steps > 0 ? largest_of_result(*value->producer(), steps - 1) : HUGE_VAL;
  return within(value->dtype(), std::isnan(largest) ? HUGE_VAL : largest);  // 0 x infinity
}

}  // namespace

double largest_magnitude(const Value* value) { return largest_within(value, kMostSteps); }

}  // namespace lathe
