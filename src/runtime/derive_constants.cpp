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

bool holds_range_of(DType to, DType from) {
  return to == from || to == DType::f64 || (to == DType::f32 && from != DType::f64) ||
         (to == DType::bf16 && from == DType::f16);
}

// Finite numbers stay finite.
Result<> check_range(const Tensor& from, const Tensor& to) {
  if (!is_floating(from.dtype()) || !is_floating(to.dtype()) || holds_range_of(to.dtype(), from.dtype())) return {};
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

ConstantDeriver::ConstantDeriver(const plan::Plan& plan, std::span<const Tensor> weights, ReadConstant read,
                                 RangeCheck check)
    : plan_(plan), weights_(weights), read_(std::move(read)), check_(check), firsts_(first_outputs(plan.refit)) {}

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
  if (check_ == RangeCheck::on && op->kind == OpKind::cast) LATHE_TRY(check_range(inputs[0], outputs[0]));
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

Result<Tensor> ConstantDeriver::value(uint32_t number) {
  const plan::Refit& refit = plan_.refit;
  if (number < weights_.size()) return weights_[number];
  if (number < refit.weights.size() + refit.operands.size())
    return read_(refit.operands[number - refit.weights.size()]);
  if (const auto done = values_.find(number); done != values_.end()) return done->second;
  return fail(ErrorCode::internal, "value {} of a refit is not there", number);
}

// Operands are evaluated first, iteratively, so that recursion depth is bounded.
Result<Tensor> ConstantDeriver::derive(uint32_t index) {
  const plan::Constant& constant = plan_.constants[index];
  const plan::Refit& refit = plan_.refit;
  const uint32_t wanted = constant.derived - 1;
  const auto leaves = static_cast<uint32_t>(refit.weights.size() + refit.operands.size());
  std::vector<size_t> open;
  std::vector<bool> needed(refit.steps.size());
  const auto need = [&](uint32_t value) {
    if (value == plan::kNoTensor || value < leaves || values_.contains(value)) return;
    const size_t step = step_of(firsts_, value);
    if (!needed[step]) open.push_back(step);
    needed[step] = true;
  };
  need(wanted);
  while (!open.empty()) {
    const size_t step = open.back();
    open.pop_back();
    for (const uint32_t input : refit.steps[step].inputs) need(input);
  }
  for (size_t step = 0; step < needed.size(); ++step)
    if (needed[step])
      if (Result<> done = run(step, firsts_[step]); !done)
        return fail(with_context(std::move(done).error(), fmt::format("constant '{}'", constant.name)));
  LATHE_ASSIGN(Tensor result, value(wanted));
  if (result.bytes() != constant.bytes)
    return fail(ErrorCode::plan_malformed, "constant '{}' has {} bytes, but what it is made of gives {}", constant.name,
                constant.bytes, result.bytes());
  return result;
}

Result<std::vector<std::vector<uint32_t>>> find_sources(const plan::Plan& plan) {
  constexpr size_t kMost = size_t{1} << 26;  // numbers; a network's constants follow from few weights each
  const plan::Refit& refit = plan.refit;
  std::vector<std::vector<uint32_t>> of_steps;
  const std::vector<uint32_t> firsts = first_outputs(refit);
  const auto leaves = static_cast<uint32_t>(refit.weights.size() + refit.operands.size());
  size_t numbers = 0;
  const auto add = [&](uint32_t value, std::vector<uint32_t>& to) {
    if (value < refit.weights.size()) return to.push_back(value);
    if (value < leaves || value == plan::kNoTensor) return;
    const std::vector<uint32_t>& from = of_steps[step_of(firsts, value)];
    to.insert(to.end(), from.begin(), from.end());
  };
  const auto finish = [&](std::vector<uint32_t>& list) -> Result<> {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    list.shrink_to_fit();
    if ((numbers += list.size()) <= kMost) return {};
    return fail(ErrorCode::plan_malformed, "its constants follow from more than {} weights, counted for each", kMost);
  };
  for (const plan::RefitStep& step : refit.steps) {
    for (std::vector<uint32_t>& sources = of_steps.emplace_back(); const uint32_t input : step.inputs)
      add(input, sources);
    LATHE_TRY(finish(of_steps.back()));
  }
  std::vector<std::vector<uint32_t>> of_constants(plan.constants.size());
  for (size_t i = 0; i < plan.constants.size(); ++i) {
    if (plan.constants[i].derived > 0) add(plan.constants[i].derived - 1, of_constants[i]);
    LATHE_TRY(finish(of_constants[i]));
  }
  return of_constants;
}

}  // namespace lathe
