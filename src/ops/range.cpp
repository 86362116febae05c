// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/rules.h"
#include "ops/symbolic.h"

namespace lathe {
namespace {

constexpr int64_t kMaxElements = 1024;

// How many values lie in [start, limit) by steps of delta; nullopt when not representable.
std::optional<int64_t> count_floating(double start, double limit, double delta) {
  const double count = std::ceil((limit - start) / delta);
  if (!(count > 0)) return std::isnan(count) ? std::nullopt : std::optional<int64_t>(0);
  return count < 0x1p62 ? std::optional(static_cast<int64_t>(count)) : std::nullopt;
}

Result<> infer_floating(InferContext& context) {
  const Tensor *start = context.constant(0), *limit = context.constant(1), *delta = context.constant(2);
  if (!start || !limit || !delta) {
    context.set(0, context.dtype(0), {context.new_symbol("range_length")});
    return {};
  }
  const std::optional<int64_t> count = count_floating(start->at_double(0), limit->at_double(0), delta->at_double(0));
  if (!count)
    return fail(ErrorCode::execution_failed, "range: start {}, limit {}, delta {} give no finite number of values",
                start->at_double(0), limit->at_double(0), delta->at_double(0));
  context.set(0, context.dtype(0), {*count});
  return {};
}

Result<> infer_integer(InferContext& context) {
  const std::vector<Expr>*start = context.elements(0), *limit = context.elements(1), *delta = context.elements(2);
  const std::optional<int64_t> step = delta ? (*delta)[0].as_constant() : std::nullopt;
  if (step == 0) return fail(ErrorCode::execution_failed, "range: delta is 0");
  if (!start || !limit || !step || *step == INT64_MIN) {
    context.set(0, context.dtype(0), {context.new_symbol("range_length")});
    return {};
  }
  const Expr distance = *step > 0 ? (*limit)[0] - (*start)[0] : (*start)[0] - (*limit)[0];
  const Expr count = larger(context, ceildiv(distance, std::abs(*step)), 0);
  context.set(0, context.dtype(0), {count});
  if (!count.is_constant() || *count.as_constant() > kMaxElements) return {};
  std::vector<Expr> elements;
  for (int64_t i = 0; i < *count.as_constant(); ++i) elements.push_back((*start)[0] + Expr(*step) * i);
  context.set_elements(0, std::move(elements));
  return {};
}

}  // namespace

Result<> infer_range(InferContext& context) {
  for (size_t i = 0; i < 3; ++i) {
    LATHE_TRY(require_numeric(context, i));
    LATHE_TRY(require_same_dtype(context, 0, i));
    if (!context.assume_equal(volume(context.shape(i)), 1))
      return fail(ErrorCode::shape_mismatch, "range: input {} must be one number, but has shape {}", i,
                  to_string(context.shape(i)));
  }
  return is_floating(context.dtype(0)) ? infer_floating(context) : infer_integer(context);
}

Result<> eval_range(EvalContext& context) {
  Tensor& output = context.output(0);
  if (!output.defined())
    return fail(ErrorCode::execution_failed, "range: delta {} is too far from 0", context.input(2).at(0));
  const int64_t count = output.volume();
  if (is_floating(output.dtype())) {
    const double start = context.input(0).at_double(0), delta = context.input(2).at_double(0);
    std::vector<double> values(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = start + static_cast<double>(i) * delta;
    from_doubles(values, output);
  } else {
    const auto start = static_cast<uint64_t>(context.input(0).at(0)),
               delta = static_cast<uint64_t>(context.input(2).at(0));
    std::vector<int64_t> values(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      values[static_cast<size_t>(i)] = static_cast<int64_t>(start + static_cast<uint64_t>(i) * delta);
    from_ints(values, output);
  }
  return {};
}

}  // namespace lathe
