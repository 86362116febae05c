// SPDX-License-Identifier: Apache-2.0
#include "passes/magnitude.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "ops/rules.h"
#include "passes/match.h"

namespace lathe {
namespace {

using ir::Value;
using Op = ElementwiseOp;

constexpr size_t kMostValues = 64;
constexpr int64_t kMostElements = 1 << 20;  // of a constant that is looked through

double largest_of(const Tensor& constant) {
  if (constant.volume() > kMostElements) return HUGE_VAL;
  double largest = 0;
  for (const double x : to_doubles(constant)) largest = std::isnan(x) ? HUGE_VAL : std::max(largest, std::fabs(x));
  return largest;
}

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

// Each value is looked at once, of what may be a graph of any form.
class Magnitudes {
 public:
  double of(const Value* value) {
    if (value->constant()) return largest_of(*value->constant());
    if (const auto seen = seen_.find(value); seen != seen_.end()) return seen->second;
    const bool is_looked_at = value->producer() && seen_.size() < kMostValues;
    seen_.emplace(value, HUGE_VAL);
    const double largest = is_looked_at ? of_result(*value->producer()) : HUGE_VAL;
    return seen_[value] = within(value->dtype(), std::isnan(largest) ? HUGE_VAL : largest);  // 0 x infinity
  }

 private:
  double of_result(const ir::Node& node) {
    const auto of_input = [&](size_t input) { return of(node.input(input)); };
    if (node.is(OpKind::fill)) return std::fabs(node.attrs<FillAttrs>().value.at_double(0));
    if (node.is(OpKind::cast) || is(&node, UnaryOp::neg) || is(&node, UnaryOp::abs)) return of_input(0);
    if (is(&node, Op::add) || is(&node, Op::sub)) return of_input(0) + of_input(1);
    if (is(&node, Op::mul)) return of_input(0) * of_input(1);
    if (is(&node, Op::min) || is(&node, Op::max)) return std::max(of_input(0), of_input(1));
    const std::vector<const Value*> operands = unchanged_operands(node);
    if (operands.empty()) return HUGE_VAL;
    double largest = 0;
    for (const Value* operand : operands) largest = std::max(largest, of(operand));
    return largest;
  }

  std::unordered_map<const Value*, double> seen_;
};

}  // namespace

double largest_magnitude(const Value* value) { return Magnitudes().of(value); }

}  // namespace lathe
