// SPDX-License-Identifier: Apache-2.0
#include "runtime/derive_constants.h"

#include <algorithm>
#include <cmath>

#include "ops/op.h"
#include "ops/packing.h"
#include "ops/rules.h"

namespace lathe {
namespace {

// The first value of each step.
std::vector<uint32_t> first_outputs(const plan::Refit& refit) {
  auto next = static_cast<uint32_t>(refit.weights.size() + refit.operands.size());
  std::vector<uint32_t> firsts;
  for (const plan::RefitStep& step : refit.steps) {
    firsts.push_back(next);
    next += step.outputs;
  }
  return firsts;
}

// The step whose output it is.
size_t step_of(const std::vector<uint32_t>& firsts, uint32_t value) {
  return static_cast<size_t>(std::upper_bound(firsts.begin(), firsts.end(), value) - firsts.begin()) - 1;
}

// Finite numbers stay finite.
Result<> check_range(const Tensor& from, const Tensor& to) {
  if (!is_floating(from.dtype()) || !is_floating(to.dtype()) || size_of(to.dtype()) >= size_of(from.dtype())) return {};
  const std::vector<double> before = to_doubles(from), after = to_doubles(to);
  for (size_t i = 0; i < before.size(); ++i)
    if (std::isfinite(before[i]) && !std::isfinite(after[i]))
      return fail(ErrorCode::invalid_argument,
                  "{} is out of the range of {}, in which the engine has the weights: scale them, build with more "
                  "precision, or switch the check off by setWeightsValidation(false)",
                  before[i], name_of(to.dtype()));
  return {};
}

}  // namespace

Result<std::vector<Tensor>> ConstantDeriver::evaluate(const plan::RefitStep& step,
                                                      std::span<const Tensor> inputs) const {
  if (step.op.empty()) {
    LATHE_ASSIGN(const Packing packing, packing_from(step.packing));
    LATHE_ASSIGN(Tensor packed, packing.apply(inputs[0]));
    return std::vector{std::move(packed)};
  }
  const OpInfo* op = find_op(step.op);
  if (!op || !op->eval) return fail(ErrorCode::plan_malformed, "weights are made by op '{}', which is none", step.op);
  LATHE_ASSIGN(const std::unique_ptr<Attributes> attributes, parse_attributes(op->kind, step.attributes));
  LATHE_ASSIGN(std::vector<Tensor> outputs, run_op(*attributes, inputs, step.outputs));
  if (check_ == WeightsCheck16::on && op->kind == OpKind::cast) LATHE_TRY(check_range(inputs[0], outputs[0]));
  return outputs;
}

Result<> ConstantDeriver::run(size_t index, uint32_t first) {
  const plan::RefitStep& step = plan_.refit.steps[index];
  std::vector<Tensor> inputs;
  for (const uint32_t input : step.inputs) {
    inputs.emplace_back();
    if (input == plan::kNoTensor) continue;
    LATHE_ASSIGN(inputs.back(), value(input));
  }
  LATHE_ASSIGN(const std::vector<Tensor> outputs, evaluate(step, inputs));
  for (uint32_t i = 0; i < outputs.size(); ++i) values_[first + i] = outputs[i];
  return {};
}

// Values that others need come before them, so that the depth of steps is that of no call.
Result<Tensor> ConstantDeriver::value(uint32_t number) {
  const plan::Refit& refit = plan_.refit;
  if (number < weights_.size()) return weights_[number];
  if (number < refit.weights.size() + refit.operands.size())
    return read_(refit.operands[number - refit.weights.size()]);
  if (const auto done = values_.find(number); done != values_.end()) return done->second;
  return fail(ErrorCode::internal, "value {} of a refit is not there", number);
}

Result<Tensor> ConstantDeriver::derive(uint32_t index) {
  const plan::Constant& constant = plan_.constants[index];
  const plan::Refit& refit = plan_.refit;
  const uint32_t wanted = constant.derived - 1;
  const std::vector<uint32_t> firsts = first_outputs(refit);
  const auto leaves = static_cast<uint32_t>(refit.weights.size() + refit.operands.size());
  std::vector<size_t> open, needed;
  if (wanted >= leaves) open.push_back(step_of(firsts, wanted));
  while (!open.empty()) {
    const size_t step = open.back();
    open.pop_back();
    needed.push_back(step);
    for (const uint32_t input : refit.steps[step].inputs)
      if (input != plan::kNoTensor && input >= leaves && !values_.contains(input))
        open.push_back(step_of(firsts, input));
  }
  std::sort(needed.begin(), needed.end());
  needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
  for (const size_t step : needed)
    if (!values_.contains(firsts[step]))
      if (Result<> done = run(step, firsts[step]); !done)
        return fail(with_context(std::move(done).error(), fmt::format("constant '{}'", constant.name)));
  LATHE_ASSIGN(Tensor result, value(wanted));
  if (result.bytes() != constant.bytes)
    return fail(ErrorCode::plan_malformed, "constant '{}' has {} bytes, but what it is made of gives {}", constant.name,
                constant.bytes, result.bytes());
  return result;
}

std::vector<std::vector<uint32_t>> find_sources(const plan::Plan& plan) {
  const plan::Refit& refit = plan.refit;
  std::vector<std::vector<uint32_t>> of_steps;
  const std::vector<uint32_t> firsts = first_outputs(refit);
  const auto leaves = static_cast<uint32_t>(refit.weights.size() + refit.operands.size());
  const auto add = [&](uint32_t value, std::vector<uint32_t>& to) {
    if (value < refit.weights.size()) return to.push_back(value);
    if (value < leaves || value == plan::kNoTensor) return;
    const std::vector<uint32_t>& from = of_steps[step_of(firsts, value)];
    to.insert(to.end(), from.begin(), from.end());
  };
  const auto finish = [](std::vector<uint32_t>& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  };
  for (const plan::RefitStep& step : refit.steps) {
    std::vector<uint32_t> sources;
    for (const uint32_t input : step.inputs) add(input, sources);
    finish(sources);
    of_steps.push_back(std::move(sources));
  }
  std::vector<std::vector<uint32_t>> of_constants(plan.constants.size());
  for (size_t i = 0; i < plan.constants.size(); ++i) {
    if (plan.constants[i].derived > 0) add(plan.constants[i].derived - 1, of_constants[i]);
    finish(of_constants[i]);
  }
  return of_constants;
}

}  // namespace lathe
