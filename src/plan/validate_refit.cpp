// SPDX-License-Identifier: Apache-2.0
#include "plan/validate_refit.h"

#include <algorithm>
#include <unordered_set>

#include "plan/limits.h"

namespace lathe::plan {
namespace {

template <class... Args>
tl::unexpected<Error> malformed(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::plan_malformed, "plan: weights that can be replaced: {}",
              fmt::format(format, std::forward<Args>(args)...));
}

// Of a dense tensor; nullopt where there is none of these dims.
std::optional<uint64_t> bytes_of(DType dtype, const std::vector<int64_t>& dims) {
  int64_t volume = 1;
  if (dims.size() > kMaxRank || !dtype_from_number(static_cast<int>(dtype))) return std::nullopt;
  for (const int64_t dim : dims)
    if (dim < 0 || __builtin_mul_overflow(volume, dim, &volume)) return std::nullopt;
  const std::optional<int64_t> bytes = lathe::bytes_of(dtype, volume);
  return bytes ? std::optional(static_cast<uint64_t>(*bytes)) : std::nullopt;
}

Result<> check_weights(const Refit& refit) {
  std::unordered_set<std::string_view> names;
  for (const RefitWeights& weights : refit.weights) {
    if (!bytes_of(weights.dtype, weights.dims)) return malformed("'{}' have no size", weights.name);
    if (weights.layers.size() != weights.roles.size())
      return malformed("'{}' have {} layers and {} roles", weights.name, weights.layers.size(), weights.roles.size());
    if (!weights.is_fixed && !weights.name.empty() && !names.insert(weights.name).second)
      return malformed("two are called '{}'", weights.name);
  }
  return {};
}

Result<> check_operands(const Plan& plan) {
  for (const RefitOperand& operand : plan.refit.operands) {
    if (operand.constant >= plan.constants.size() || plan.constants[operand.constant].derived > 0)
      return malformed("constant {} does not stay", operand.constant);
    const std::optional<uint64_t> bytes = bytes_of(operand.dtype, operand.dims);
    if (!bytes || *bytes > plan.constants[operand.constant].bytes)
      return malformed("an operand is larger than constant {}", operand.constant);
  }
  return {};
}

// Gives the number of values.
Result<size_t> check_steps(const Refit& refit) {
  size_t values = refit.weights.size() + refit.operands.size();
  for (const RefitStep& step : refit.steps) {
    for (const uint32_t input : step.inputs)
      if (input != kNoTensor && (input >= values || (input < refit.weights.size() && refit.weights[input].is_fixed)))
        return malformed("a step reads value {}, which is not there", input);
    if (step.op.empty() != !step.packing.empty() || step.outputs < 1 || step.outputs > kMaxOperands)
      return malformed("a step is neither an op nor a packing, or has {} outputs", step.outputs);
    if (step.op.empty() && (step.inputs.size() != 1 || step.inputs[0] == kNoTensor || step.outputs != 1))
      return malformed("a packing has {} inputs", step.inputs.size());
    values += step.outputs;
    if (values > kMaxEntries) return malformed("there are more than {} values", kMaxEntries);
  }
  return values;
}

}  // namespace

Result<> validate_refit(const Plan& plan) {
  const Refit& refit = plan.refit;
  if (refit.kind == RefitKind::none && !(refit.weights.empty() && refit.operands.empty() && refit.steps.empty()))
    return malformed("there are some in a plan that has none");
  if (refit.code > plan.codes.size() || (refit.kind == RefitKind::none && refit.code > 0))
    return malformed("code module {} packs them, which is not there", refit.code);
  LATHE_TRY(check_weights(refit));
  LATHE_TRY(check_operands(plan));
  LATHE_ASSIGN(const size_t values, check_steps(refit));
  uint64_t total = 0;
  for (const Constant& constant : plan.constants) {
    if (constant.derived > values)
      return malformed("constant '{}' is made of a value that is not there", constant.name);
    if (constant.derived > 0 && constant.derived <= refit.weights.size() &&
        refit.weights[constant.derived - 1].is_fixed)
      return malformed("constant '{}' is made of weights that stay", constant.name);
    if (constant.stripped && (constant.derived == 0 || constant.offset != 0))
      return malformed("constant '{}' is stripped, and nothing gives it back", constant.name);
    if (__builtin_add_overflow(total, constant.bytes, &total) || total > INT64_MAX / 2)
      return malformed("the constants are too large");
  }
  return {};
}

}  // namespace lathe::plan
