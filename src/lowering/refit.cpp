// SPDX-License-Identifier: Apache-2.0
#include "lowering/refit.h"

#include <algorithm>
#include <map>

#include "base/divide.h"
#include "ir/constants.h"
#include "lowering/plan_code.h"

namespace lathe {
namespace {

using plan::RefitKind;
using plan::RefitWeights;

// Whether a size, an axis or a position is computed of nothing but this constant and others: the plan is laid out by
// it.
bool makes_sizes(const ir::Value& constant, int depth = 0) {
  constexpr int kDeepest = 16;
  return std::any_of(constant.uses().begin(), constant.uses().end(), [&](const ir::Use& use) {
    const ir::Node& node = *use.node;
    if (says_sizes(node.info(), use.index) || node.has_trait(kQuantization)) return true;
    const bool is_folded = std::all_of(node.inputs().begin(), node.inputs().end(),
                                       [](const ir::Value* input) { return !input || input->content(); });
    if (!is_folded || !node.bodies().empty()) return false;
    for (size_t i = 0; i < node.num_outputs(); ++i)
      if (depth == kDeepest || makes_sizes(*node.output(i), depth + 1)) return true;
    return false;
  });
}

// Single numbers are parts of patterns, as the 0.5 of GELU is: they stay, unless the application has named them.
bool can_be_replaced(const ir::Value& constant, const RefitOptions::Source& source) {
  const Tensor& content = *constant.content();
  return source.is_replaceable && is_floating(content.dtype()) && content.volume() > 0 &&
         (content.rank() > 0 || source.is_named_by_application) && !makes_sizes(constant);
}

class WeightsMarker {
 public:
  explicit WeightsMarker(const RefitOptions& options) : options_(options) {}

  Result<std::vector<RefitWeights>> run(ir::Graph& graph) {
    ir::for_each_constant(graph, [&](const std::string& name, ir::Value& constant, ir::Where where) {
      const auto it = options_.weights.find(name);
      if (where == ir::Where::body || it == options_.weights.end() || !can_be_replaced(constant, it->second))
        fix(name, constant, it == options_.weights.end() || it->second.weights.is_added);
      else
        mark(constant, it->second.weights);
    });
    if (error_) return fail(*std::move(error_));
    LATHE_TRY(reshape_shared());
    LATHE_TRY(graph.infer_all());
    weights_.insert(weights_.end(), fixed_.begin(), fixed_.end());
    return std::move(weights_);
  }

 private:
  static RefitWeights describe(const ir::Value& constant) {
    RefitWeights weights;
    weights.dtype = constant.dtype();
    weights.dims = constant.content()->dims();
    weights.digest = digest_of(constant.content()->raw());
    return weights;
  }

  void fix(const std::string& name, const ir::Value& constant, bool is_added) {
    fixed_.push_back(describe(constant));
    fixed_.back().name = name;
    fixed_.back().is_fixed = true;
    fixed_.back().is_added = is_added;
  }

  // The same weights of several layers have one name.
  void mark(ir::Value& constant, const RefitWeights& source) {
    const auto shared = source.name.empty() ? by_name_.end() : by_name_.find(source.name);
    if (shared != by_name_.end()) {
      RefitWeights& weights = weights_[shared->second];
      if (weights.dtype != constant.dtype() || *checked_volume(weights.dims) != constant.content()->volume()) {
        error_ =
            Error{ErrorCode::config_invalid,
                  fmt::format("weights '{}' are {} elements of type {} in one layer, and {} of type {} in another: "
                              "give them different names by setWeightsName()",
                              source.name, *checked_volume(weights.dims), name_of(weights.dtype),
                              constant.content()->volume(), name_of(constant.dtype())),
                  {}};
        return;
      }
      weights.layers.insert(weights.layers.end(), source.layers.begin(), source.layers.end());
      weights.roles.insert(weights.roles.end(), source.roles.begin(), source.roles.end());
      sharing_.emplace_back(&constant, shared->second);
      return;
    }
    const auto number = static_cast<uint32_t>(weights_.size());
    if (!source.name.empty()) by_name_.emplace(source.name, number);
    RefitWeights weights = describe(constant);
    weights.name = source.name;
    weights.model_name = source.model_name;
    weights.is_added = source.is_added;
    weights.layers = source.layers;
    weights.roles = source.roles;
    weights_.push_back(std::move(weights));
    constant.producer()->derivation = leaves_.emplace_back(Derivation::of_weights(number));
  }

  // In each layer with dims of its own.
  Result<> reshape_shared() {
    for (const auto& [constant, number] : sharing_) {
      const Dims& dims = constant->content()->dims();
      if (dims == weights_[number].dims) {
        constant->producer()->derivation = leaves_[number];
        continue;
      }
      const Known source{constant->content()->reshaped(weights_[number].dims), leaves_[number]};
      const Known shape{Tensor::from<int64_t>({static_cast<int64_t>(dims.size())}, dims), nullptr};
      LATHE_ASSIGN(const auto made, compute(ReshapeAttrs(), std::array{source, shape}, 1));
      constant->producer()->derivation = made[0].derivation;
    }
    return {};
  }

  const RefitOptions& options_;
  std::vector<RefitWeights> weights_, fixed_;
  std::vector<DerivationPtr> leaves_;  // by number
  std::unordered_map<std::string, uint32_t> by_name_;
  std::vector<std::pair<ir::Value*, uint32_t>> sharing_;
  std::optional<Error> error_;
};

// Numbers values: steps' outputs come behind weights and operands, whose number is known at the end.
class RefitWriter {
 public:
  explicit RefitWriter(BuiltPlan& built) : plan_(built.plan), refit_(built.plan.refit) {}

  void write(const std::vector<DerivationPtr>& derivations) {
    for (uint32_t i = 0; i < plan_.constants.size(); ++i)
      if (i >= derivations.size() || !derivations[i]) fixed_.emplace(plan_.constants[i].digest, i);
    std::vector<Value> values;
    for (const DerivationPtr& derivation : derivations)
      values.push_back(derivation ? value_of(*derivation) : Value{Value::none, 0});
    for (size_t i = 0; i < refit_.steps.size(); ++i)
      for (const Value& input : inputs_[i]) refit_.steps[i].inputs.push_back(number_of(input));
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i].kind != Value::none) plan_.constants[i].derived = 1 + number_of(values[i]);
  }

 private:
  struct Value {
    enum Kind : uint8_t { none, weights, operand, output } kind = none;
    uint32_t index = 0;
  };

  uint32_t number_of(const Value& value) const {
    const auto weights = static_cast<uint32_t>(refit_.weights.size());
    switch (value.kind) {
      case Value::none:
        return plan::kNoTensor;
      case Value::weights:
        return value.index;
      case Value::operand:
        return weights + value.index;
      case Value::output:
        return weights + static_cast<uint32_t>(refit_.operands.size()) + value.index;
    }
    return plan::kNoTensor;
  }

  Value value_of(const Derivation& derivation) {
    if (derivation.weights) return {Value::weights, *derivation.weights};
    if (const auto done = values_.find(&derivation); done != values_.end()) return done->second;
    const bool computed = derivation.attributes || derivation.packing;
    return values_[&derivation] = computed ? output_of(derivation) : operand_of(derivation.constant);
  }

  // Fixed weights are a constant of the plan: one that steps read, if there is one.
  Value operand_of(const Tensor& content) {
    const Digest digest = digest_of(content.raw());
    const auto [it, is_new] = fixed_.emplace(digest, static_cast<uint32_t>(plan_.constants.size()));
    if (is_new) {
      const uint64_t offset = round_up(plan_.weights_bytes(), uint64_t{64});
      plan_.constants.push_back(
          {fmt::format("refit operand {}", refit_.operands.size()), offset, content.bytes(), digest});
      plan_.pieces.push_back({content.raw(), content.owner()});
      plan_.pieces_bytes = offset + content.bytes();
    }
    refit_.operands.push_back({it->second, content.dtype(), content.dims()});
    return {Value::operand, static_cast<uint32_t>(refit_.operands.size() - 1)};
  }

  Value output_of(const Derivation& derivation) {
    if (const auto done = steps_.find(derivation.step.get()); derivation.step && done != steps_.end())
      return {Value::output, done->second + static_cast<uint32_t>(derivation.output)};
    std::vector<Value> inputs;
    for (const DerivationPtr& input : derivation.inputs) inputs.push_back(input ? value_of(*input) : Value());
    plan::RefitStep step;
    if (derivation.packing) {
      step.packing = to_numbers(*derivation.packing);
    } else {
      step.op = op_info(derivation.attributes->kind()).name;
      step.attributes = to_text(*derivation.attributes);
    }
    step.outputs = static_cast<uint32_t>(derivation.num_outputs);
    const uint32_t first = outputs_;
    outputs_ += step.outputs;
    if (derivation.step) steps_.emplace(derivation.step.get(), first);
    refit_.steps.push_back(std::move(step));
    inputs_.push_back(std::move(inputs));
    return {Value::output, first + static_cast<uint32_t>(derivation.output)};
  }

  plan::Plan& plan_;
  plan::Refit& refit_;
  uint32_t outputs_ = 0;
  std::vector<std::vector<Value>> inputs_;  // of steps
  std::unordered_map<const Derivation*, Value> values_;
  std::unordered_map<const int*, uint32_t> steps_;  // their first output
  std::map<Digest, uint32_t> fixed_;                // constants that follow from no weights, by content
};

void strip(plan::Plan& plan) {
  uint64_t end = 0;
  for (size_t i = 0; i < plan.constants.size(); ++i) {
    plan::Constant& constant = plan.constants[i];
    if (constant.derived > 0) {
      constant.stripped = true;
      constant.offset = 0;
      constant.digest = {};
      plan.pieces[i] = {};
      continue;
    }
    constant.offset = round_up(end, uint64_t{64});
    end = constant.offset + constant.bytes;
  }
  plan.pieces_bytes = end;
}

}  // namespace

Result<std::vector<RefitWeights>> mark_weights(ir::Graph& graph, const RefitOptions& options) {
  return WeightsMarker(options).run(graph);
}

void write_refit(BuiltPlan& built, std::vector<RefitWeights> weights, const RefitOptions& options) {
  built.plan.refit.kind = options.kind;
  built.plan.refit.weights = std::move(weights);
  RefitWriter(built).write(built.derivations);
  if (options.strips) strip(built.plan);
  built.report.weights_bytes = built.plan.weights_bytes();
}

Result<> add_packing(BuiltPlan& built, const BuildOptions& options, Modules& modules) {
  plan::Refit& refit = built.plan.refit;
  const auto is_packing = [](const plan::RefitStep& step) { return step.op.empty(); };
  if (options.packing_source.empty() || std::ranges::none_of(refit.steps, is_packing)) return {};
  LATHE_ASSIGN(refit.code, PlanCode(built, options, modules).add(options.packing_source, /*is_open=*/false));
  ++refit.code;
  return {};
}

}  // namespace lathe
