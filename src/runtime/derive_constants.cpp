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

// Finite numbers stay finite.
Result<> check_range(const Tensor& from, const Tensor& to) {
  if (!is_floating(from.dtype()) || !is_floating(to.dtype()) || holds_range(to.dtype(), from.dtype())) return {};
  const std::vector<double> before = to_doubles(from), after = to_doubles(to);
  for (size_t i = 0; i < before.size(); ++i)
    if (std::isfinite(before[i]) && !std::isfinite(after[i]))
      return fail(ChannelArithmetic::OutOfRange{before[i], to.dtype()}.error());
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

constexpr size_t kMostBytes = 64 << 10;  // of what is small
constexpr int64_t kManyElements = 4096;  // elements

// What has these bytes.
ConstantContent content_with(Tensor source, uint32_t weights = plan::kNoTensor) {
  return {ChannelArithmetic(std::move(source)), nullptr, weights};
}

std::vector<Tensor> sources_of(std::span<const ConstantContent> contents) {
  std::vector<Tensor> sources;
  for (const ConstantContent& content : contents) sources.push_back(content.elements.source());
  return sources;
}

}  // namespace

Result<std::vector<ConstantStep>> read_steps(const plan::Refit& refit) {
  std::vector<ConstantStep> steps(refit.steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const plan::RefitStep& step = refit.steps[i];
    if (step.op.empty()) {
      LATHE_ASSIGN(steps[i].packing, packing_from(step.packing));
      continue;
    }
    steps[i].op = find_op(step.op);
    if (!steps[i].op || !steps[i].op->eval)
      return fail(ErrorCode::plan_malformed, "weights are made by op '{}', which is none", step.op);
    LATHE_ASSIGN(steps[i].attributes, parse_attributes(steps[i].op->kind, step.attributes));
  }
  return steps;
}

ConstantDeriver::ConstantDeriver(const plan::Plan& plan, std::span<const ConstantStep> steps,
                                 std::span<const Tensor> weights, ReadConstant read, RangeCheck check)
    : plan_(plan),
      steps_(steps),
      weights_(weights),
      read_(std::move(read)),
      check_(check),
      firsts_(first_outputs(plan.refit)) {}

Result<> ConstantDeriver::evaluate(Evaluation& evaluation) const {
  const ConstantStep* const step = evaluation.step;
  const std::vector<ConstantContent>& inputs = evaluation.inputs;
  std::vector<Tensor>& outputs = evaluation.outputs;
  if (!step) {
    const ChannelArithmetic& elements = inputs[0].elements;
    if (!outputs[0].defined()) {
      LATHE_ASSIGN(outputs[0], Tensor::allocate(elements.type(), elements.source().dims()));
    }
    std::optional<ChannelArithmetic::OutOfRange> found;
    elements.run(0, elements.volume(), outputs[0].mutable_as<std::byte>(), check_ == RangeCheck::on ? &found : nullptr);
    if (found) return fail(found->error());
    return {};
  }
  const std::vector<Tensor> tensors = sources_of(inputs);
  if (!step->op) {
    LATHE_ASSIGN(outputs[0], step->packing.apply(tensors[0]));
    return {};
  }
  const auto place = [&](size_t i, DType type, const Dims& dims) -> Result<Tensor> {
    return outputs[i].dtype() == type && outputs[i].dims() == dims ? outputs[i] : Tensor();
  };
  LATHE_ASSIGN(std::vector<Tensor> made, run_op(*step->attributes, tensors, outputs.size(), place));
  for (size_t i = 0; i < made.size(); ++i)
    if (outputs[i].defined() && outputs[i].data() != made[i].data())
      return fail(ErrorCode::internal, "what weights follow from has other dims than before");
  outputs = std::move(made);
  if (check_ == RangeCheck::on && step->op->kind == OpKind::cast) return lathe::check_range(tensors[0], outputs[0]);
  return {};
}

Result<Tensor> ConstantDeriver::evaluate(ConstantContent content) const {
  Evaluation evaluation{nullptr, {std::move(content)}, std::vector<Tensor>(1)};
  LATHE_TRY(evaluate(evaluation));
  Tensor made = evaluation.outputs[0];
  record(std::move(evaluation));
  return made;
}

// Before others read its outputs.
void ConstantDeriver::record(Evaluation evaluation) const {
  const ConstantStep* const step = evaluation.step;
  const bool is_small =
      std::ranges::all_of(evaluation.outputs, [](const Tensor& output) { return output.bytes() <= kMostBytes; });
  const std::lock_guard lock(mutex_);
  if (!is_small || (step && (!step->op || step->op->traits & kDataDependent))) is_repeatable_ = false;
  if (is_repeatable_)
    evaluations_.push_back(std::move(evaluation));
  else
    evaluations_.clear();
}

// Leaves arithmetic to who needs its numbers, so that a chain of it is gone through once: false where a step is none.
Result<bool> ConstantDeriver::defer(size_t index, Values& values) const {
  constexpr size_t kMostSteps = 16;
  const plan::RefitStep& step = plan_.refit.steps[index];
  const Attributes* const op = steps_[index].attributes.get();
  const bool joins = op && op->kind() == OpKind::elementwise;
  if (!op || (!joins && op->kind() != OpKind::cast) || step.outputs != 1 || step.inputs.size() != (joins ? 2 : 1) ||
      std::ranges::find(step.inputs, plan::kNoTensor) != step.inputs.end())
    return false;
  ConstantContent operand;
  if (joins) {
    LATHE_ASSIGN(operand, done(step.inputs[1], values));
  }
  LATHE_ASSIGN(ConstantContent content, value(step.inputs[0], values));
  if (content.elements.steps().size() == kMostSteps) {
    LATHE_ASSIGN(content, done(step.inputs[0], values));
  }
  const DType type = content.elements.type();
  std::optional<ChannelStep> next;
  if (!joins) {
    next = ChannelStep::of_cast(type, static_cast<const CastAttrs&>(*op));
  } else if (const Tensor& numbers = operand.elements.source();
             numbers.dtype() == type &&
             (numbers.volume() < kManyElements || numbers.volume() < content.elements.volume())) {
    next = ChannelStep::of(static_cast<const ElementwiseAttrs&>(*op), type, content.elements.source().dims(), numbers);
    if (next && (type != DType::f64 || operand.weights != plan::kNoTensor)) {
      operand.elements.add({std::nullopt, {}, 1, DType::f64});
      LATHE_ASSIGN(next->numbers, evaluate(std::move(operand)));
    }
  }
  if (!next) return false;
  content.elements.add(*std::move(next));
  values[firsts_[index]] = std::move(content);
  return true;
}

Result<> ConstantDeriver::run(size_t index, Values& values) const {
  LATHE_ASSIGN(const bool is_deferred, defer(index, values));
  if (is_deferred) return {};
  const plan::RefitStep& step = plan_.refit.steps[index];
  Evaluation evaluation{&steps_[index], {}, std::vector<Tensor>(step.outputs)};
  std::vector<ConstantContent>& inputs = evaluation.inputs;
  for (const uint32_t input : step.inputs) {
    inputs.emplace_back();
    if (input == plan::kNoTensor) continue;
    LATHE_ASSIGN(inputs.back(), done(input, values));
  }
  const OpInfo* const op = evaluation.step->op;
  if (op && op->traits & kView && step.outputs == 1 && !inputs.empty() && inputs[0].elements.source().defined()) {
    LATHE_ASSIGN(Tensor viewed, view(*evaluation.step->attributes, sources_of(inputs)));
    put(firsts_[index], content_with(std::move(viewed), inputs[0].weights), values);
    return {};
  }
  LATHE_TRY(evaluate(evaluation));
  const std::vector<Tensor> outputs = evaluation.outputs;
  record(std::move(evaluation));
  for (uint32_t i = 0; i < outputs.size(); ++i) put(firsts_[index] + i, content_with(outputs[i]), values);
  return {};
}

bool ConstantDeriver::take_shared(uint32_t value, Values& values) const {
  const std::lock_guard lock(mutex_);
  const auto found = shared_.find(value);
  if (found == shared_.end()) return false;
  values[value] = found->second;
  return true;
}

void ConstantDeriver::put(uint32_t value, const ConstantContent& content, Values& values) const {
  values[value] = content;
  if (content.elements.source().bytes() > kMostBytes) return;
  const std::lock_guard lock(mutex_);
  shared_[value] = content;
}

// Weights are read while they are given alone.
Result<ConstantContent> ConstantDeriver::value(uint32_t number, const Values& values) const {
  const plan::Refit& refit = plan_.refit;
  if (number < weights_.size()) {
    const Tensor& weights = weights_[number];
    return content_with(Tensor::view(weights.dtype(), weights.dims(), weights.data(), nullptr), number);
  }
  if (number < refit.weights.size() + refit.operands.size()) {
    LATHE_ASSIGN(Tensor operand, read_(refit.operands[number - refit.weights.size()]));
    return content_with(std::move(operand));
  }
  if (const auto found = values.find(number); found != values.end()) return found->second;
  return fail(ErrorCode::internal, "value {} of a refit is not there", number);
}

// The same without arithmetic.
Result<ConstantContent> ConstantDeriver::done(uint32_t number, Values& values) const {
  LATHE_ASSIGN(ConstantContent content, value(number, values));
  if (content.elements.steps().empty()) return content;
  LATHE_ASSIGN(Tensor made, evaluate(std::move(content)));
  content = content_with(std::move(made));
  put(number, content, values);
  return content;
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

Result<ConstantContent> ConstantDeriver::derive(uint32_t index) const {
  const plan::Constant& constant = plan_.constants[index];
  Result<ConstantContent> content = content_of(constant.derived - 1);
  if (!content) return fail(with_context(std::move(content).error(), fmt::format("constant '{}'", constant.name)));
  const DType type = content->elements.type();
  const int64_t elements = content->packing ? *checked_volume(content->packing->dims) : content->elements.volume();
  const std::optional<int64_t> bytes = bytes_of(type, elements);
  if (!bytes || static_cast<uint64_t>(*bytes) != constant.bytes)
    return fail(ErrorCode::plan_malformed, "constant '{}' has {} bytes, but what it is made of gives {} elements of {}",
                constant.name, constant.bytes, elements, name_of(type));
  return content;
}

// Arithmetic of many elements is left to who puts them in place.
Result<ConstantContent> ConstantDeriver::content_of(uint32_t number) const {
  const Packing* packing = nullptr;
  if (number >= plan_.refit.weights.size() + plan_.refit.operands.size()) {
    const size_t step = step_of(firsts_, number);
    if (!steps_[step].op) packing = &steps_[step].packing, number = plan_.refit.steps[step].inputs[0];
  }
  Values values;
  LATHE_TRY(compute(number, values));
  LATHE_ASSIGN(ConstantContent content, value(number, values));
  if (content.elements.volume() < kManyElements) {
    LATHE_ASSIGN(content, done(number, values));
  }
  content.packing = packing;
  if (packing) LATHE_TRY(check_packing(*packing, content.elements.source()));
  return content;
}

void ConstantDeriver::read_again(ConstantContent& content) const {
  if (content.weights == plan::kNoTensor) return;
  const Tensor& before = content.elements.source();
  content.elements.set_source(Tensor::view(before.dtype(), before.dims(), weights_[content.weights].data(), nullptr));
}

Result<> ConstantDeriver::repeat(std::span<const Tensor> weights, RangeCheck check,
                                 std::span<ConstantContent> contents) {
  weights_ = weights;
  check_ = check;
  for (Evaluation& evaluation : evaluations_) {
    for (ConstantContent& input : evaluation.inputs) read_again(input);
    LATHE_TRY(evaluate(evaluation));
  }
  for (ConstantContent& content : contents) read_again(content);
  return {};
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
