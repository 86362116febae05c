// SPDX-License-Identifier: Apache-2.0
#include "runtime/derive_constants.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ops/op.h"
#include "ops/pack_bytes.h"
#include "ops/result_types.h"
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

tl::unexpected<Error> out_of_range(double number, DType type) {
  return fail(ErrorCode::invalid_argument,
              "{} is out of the range of {}, in which the engine has the weights: scale them, build with more "
              "precision, or switch the check off by setWeightsValidation(false)",
              number, name_of(type));
}

// Finite numbers stay finite.
Result<> check_range(const Tensor& from, const Tensor& to) {
  if (!is_floating(from.dtype()) || !is_floating(to.dtype()) || holds_range_of(to.dtype(), from.dtype())) return {};
  const std::vector<double> before = to_doubles(from), after = to_doubles(to);
  for (size_t i = 0; i < before.size(); ++i)
    if (std::isfinite(before[i]) && !std::isfinite(after[i])) return out_of_range(before[i], to.dtype());
  return {};
}

// The same elements under other dims.
Result<Tensor> view(const Attributes& attributes, std::span<const Tensor> inputs) {
  std::vector<ValueType> types(inputs.size());
  std::vector<const ValueType*> given(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) continue;
    types[i] = {inputs[i].dtype(), to_shape(inputs[i].dims())};
    given[i] = &types[i];
  }
  LATHE_ASSIGN(const std::vector<ValueType> results, result_types(attributes, given, inputs, 1));
  const std::optional<Dims> dims = as_constant(results[0].shape);
  if (!dims || checked_volume(*dims) != inputs[0].volume())
    return fail(ErrorCode::plan_malformed, "weights of {} elements are given other dims", inputs[0].volume());
  return inputs[0].reshaped(*dims);
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
  if (op->traits & kView && step.outputs == 1 && !inputs.empty() && inputs[0].defined()) {
    LATHE_ASSIGN(Tensor viewed, view(*attributes, inputs));
    return std::vector{std::move(viewed)};
  }
  LATHE_ASSIGN(std::vector<Tensor> outputs, run_op(*attributes, inputs, step.outputs));
  if (check_ == RangeCheck::on && op->kind == OpKind::cast) LATHE_TRY(check_range(inputs[0], outputs[0]));
  return outputs;
}

Result<> ConstantDeriver::run(size_t index, Values& values) const {
  const plan::RefitStep& step = plan_.refit.steps[index];
  std::vector<Tensor> inputs;
  for (const uint32_t input : step.inputs) {
    inputs.emplace_back();
    if (input == plan::kNoTensor) continue;
    LATHE_ASSIGN(inputs.back(), value(input, values));
  }
  LATHE_ASSIGN(const std::vector<Tensor> outputs, evaluate(step, inputs));
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    values[firsts_[index] + i] = outputs[i];
    share(firsts_[index] + i, outputs[i]);
  }
  return {};
}

bool ConstantDeriver::take_shared(uint32_t value, Values& values) const {
  const std::lock_guard lock(mutex_);
  const auto found = shared_.find(value);
  return found != shared_.end() && values.insert(*found).second;
}

void ConstantDeriver::share(uint32_t value, const Tensor& tensor) const {
  constexpr size_t kMostBytes = 64 << 10;
  if (tensor.bytes() > kMostBytes) return;
  const std::lock_guard lock(mutex_);
  shared_.emplace(value, tensor);
}

Result<Tensor> ConstantDeriver::value(uint32_t number, const Values& values) const {
  const plan::Refit& refit = plan_.refit;
  if (number < weights_.size()) return weights_[number];
  if (number < refit.weights.size() + refit.operands.size())
    return read_(refit.operands[number - refit.weights.size()]);
  if (const auto done = values.find(number); done != values.end()) return done->second;
  return fail(ErrorCode::internal, "value {} of a refit is not there", number);
}

// Operands are evaluated first, iteratively, so that recursion depth is bounded.
Result<> ConstantDeriver::compute(uint32_t wanted, Values& values) const {
  const plan::Refit& refit = plan_.refit;
  const auto leaves = static_cast<uint32_t>(refit.weights.size() + refit.operands.size());
  std::set<size_t> needed;
  std::vector<size_t> open;
  const auto need = [&](uint32_t value) {
    if (value == plan::kNoTensor || value < leaves || values.contains(value) || take_shared(value, values)) return;
    const size_t step = step_of(firsts_, value);
    if (needed.insert(step).second) open.push_back(step);
  };
  need(wanted);
  while (!open.empty()) {
    const size_t step = open.back();
    open.pop_back();
    for (const uint32_t input : refit.steps[step].inputs) need(input);
  }
  for (const size_t step : needed) LATHE_TRY(run(step, values));
  return {};
}

// Null where no step makes the value.
const plan::RefitStep* ConstantDeriver::step_behind(uint32_t value) const {
  const plan::Refit& refit = plan_.refit;
  const bool is_made = value >= refit.weights.size() + refit.operands.size() && value != plan::kNoTensor;
  return is_made ? &refit.steps[step_of(firsts_, value)] : nullptr;
}

// Arithmetic of weights that makes a value, from the back: false where there is none, or too little to be worth it.
Result<bool> ConstantDeriver::find_arithmetic(uint32_t value, ConstantContent& content, Values& values) const {
  constexpr size_t kMostSteps = 16;
  constexpr int64_t kLeast = 4096;  // elements
  std::vector<const plan::RefitStep*> chain;
  for (const plan::RefitStep* step = step_behind(value); step; step = step_behind(step->inputs[0])) {
    const OpInfo* const op = find_op(step->op);
    if (!op || (op->kind != OpKind::cast && op->kind != OpKind::elementwise) || chain.size() == kMostSteps ||
        step->inputs.empty() || step->outputs != 1)
      return false;
    chain.push_back(step);
  }
  const uint32_t leaf = chain.empty() ? value : chain.back()->inputs[0];
  if (chain.empty() || leaf == plan::kNoTensor) return false;
  LATHE_ASSIGN(const Tensor source, this->value(leaf, values));
  if (source.volume() < kLeast) return false;
  std::vector<ChannelStep> steps;
  for (auto step = chain.rbegin(); step != chain.rend(); ++step) {
    const DType type = steps.empty() ? source.dtype() : steps.back().type;
    LATHE_ASSIGN(std::optional<ChannelStep> next, channel_step(**step, type, source.dims(), values));
    if (!next) return false;
    steps.push_back(*std::move(next));
  }
  content.source = source;
  content.arithmetic.emplace(source, std::move(steps));
  return true;
}

Result<std::optional<ChannelStep>> ConstantDeriver::channel_step(const plan::RefitStep& step, DType type,
                                                                 const Dims& dims, Values& values) const {
  LATHE_ASSIGN(const std::unique_ptr<Attributes> attributes, parse_attributes(find_op(step.op)->kind, step.attributes));
  if (attributes->kind() == OpKind::cast) return ChannelStep::of_cast(type, static_cast<const CastAttrs&>(*attributes));
  if (step.inputs.size() != 2 || step.inputs[1] == plan::kNoTensor) return std::nullopt;
  LATHE_TRY(compute(step.inputs[1], values));
  LATHE_ASSIGN(const Tensor operand, value(step.inputs[1], values));
  return ChannelStep::of(static_cast<const ElementwiseAttrs&>(*attributes), type, dims, operand);
}

Result<ConstantContent> ConstantDeriver::derive(uint32_t index) const {
  const plan::Constant& constant = plan_.constants[index];
  Result<ConstantContent> content = content_of(constant.derived - 1);
  if (!content) return fail(with_context(std::move(content).error(), fmt::format("constant '{}'", constant.name)));
  const DType type = content->arithmetic ? content->arithmetic->type() : content->source.dtype();
  const int64_t elements = content->packing ? *checked_volume(content->packing->dims) : content->source.volume();
  const std::optional<int64_t> bytes = bytes_of(type, elements);
  if (!bytes || static_cast<uint64_t>(*bytes) != constant.bytes)
    return fail(ErrorCode::plan_malformed, "constant '{}' has {} bytes, but what it is made of gives {} elements of {}",
                constant.name, constant.bytes, elements, name_of(type));
  return content;
}

Result<ConstantContent> ConstantDeriver::content_of(uint32_t number) const {
  ConstantContent content;
  if (const plan::RefitStep* const step = step_behind(number); step && step->op.empty()) {
    LATHE_ASSIGN(content.packing, packing_from(step->packing));
    number = step->inputs[0];
  }
  Values values;
  LATHE_ASSIGN(const bool has_arithmetic, find_arithmetic(number, content, values));
  if (!has_arithmetic) {
    LATHE_TRY(compute(number, values));
    LATHE_ASSIGN(content.source, value(number, values));
  } else if (check_ == RangeCheck::on && !holds_range_of(content.arithmetic->type(), content.source.dtype())) {
    if (const auto found = content.arithmetic->find_out_of_range()) return out_of_range(found->number, found->type);
  }
  if (content.packing) LATHE_TRY(check_packing(*content.packing, content.source));
  return content;
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
