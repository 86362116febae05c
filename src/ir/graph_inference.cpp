// SPDX-License-Identifier: Apache-2.0
// Types of a graph's values: shape rules run when nodes are made, and again when more or less is known of what they
// read.
#include <algorithm>
#include <unordered_set>

#include "ir/graph.h"

namespace lathe::ir {
namespace {

// Whether shape rules downstream see the same type and contents.
bool knows_as_much(const Value& a, const Value& b) {
  const auto same = [](const Expr& x, const Expr& y) { return x == y || (!x.is_valid() && !y.is_valid()); };
  const std::vector<Expr>*x = a.partial_elements(), *y = b.partial_elements();
  if (a.dtype() != b.dtype() || a.shape() != b.shape() || !x != !y) return false;
  return !x || std::ranges::equal(*x, *y, same);
}

}  // namespace

Result<Graph::Inferred> Graph::run_rule(Node* node) {
  std::vector<InferContext::Input> inputs;
  for (Value* value : node->inputs_)
    inputs.push_back(value ? InferContext::Input{&value->type(), value->constant(), value->partial_elements()}
                           : InferContext::Input{});
  const auto fresh = [&](std::string_view what, size_t place) {
    const auto [it, is_new] = node->symbols_.try_emplace(fmt::format("{}{}", what, place), Expr::invalid());
    if (is_new)
      it->second = new_symbol(
          {fmt::format("{}.{}", node->name(), it->first), SymbolSource::computed, 0, 0, {0, Range::kUnbounded}});
    return it->second;
  };
  std::vector<InferContext::Results> results;
  if (!node->bodies_.empty()) {
    LATHE_TRY(infer_bodies(node));
    for (const auto& body : node->bodies_) results.push_back(results_of(*body, *node));
  }
  InferContext context(node->attributes(), inputs, node->num_outputs(), fresh, &table_->ranges, &table_->expansions);
  context.set_bodies(std::move(results));
  const OpInfo& info = node->info();
  if (!info.infer) return fail(ErrorCode::op_unsupported, "op {} is not available", info.name);
  if (Result<> result = infer_op(info, context); !result) {
    std::string operands;
    for (Value* value : node->inputs_)
      operands +=
          (operands.empty() ? "" : ", ") +
          (value ? fmt::format("{}: {}", value->name(), to_brief_string(value->type(), *this)) : std::string("(none)"));
    Error error = with_context(std::move(result).error(), fmt::format("{} '{}'", info.name, node->name()));
    error.message += fmt::format(" (inputs: {})", operands);
    return fail(std::move(error));
  }
  for (const InferContext::Output& output : context.outputs())
    for (const Expr& dim : output.type.shape) {
      if (!dim.is_valid())
        return fail(ErrorCode::shape_mismatch, "{} '{}': a dimension of its output overflows", info.name, node->name());
      if (!context.assume(Relation::at_most, 0, dim))
        return fail(ErrorCode::shape_mismatch, "{} '{}': a dimension of its output is negative: {}", info.name,
                    node->name(), dim.to_string(symbol_names()));
    }
  for (Constraint& constraint : context.constraints())
    constraint.where = fmt::format("{} '{}'", info.name, node->name());
  return Inferred{std::move(context.outputs()), std::move(context.constraints())};
}

Result<> Graph::infer(Node* node) {
  LATHE_ASSIGN(auto inferred, run_rule(node));
  node->constraints_ = std::move(inferred.constraints);
  std::vector<InferContext::Output>& outputs = inferred.outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    node->outputs_[i]->type_ = std::move(outputs[i].type);
    node->outputs_[i]->elements_ = std::move(outputs[i].elements);
    node->outputs_[i]->has_elements_ = outputs[i].has_elements;
  }
  if (const Tensor* value = node->outputs_[0]->constant();
      value && is_integral(value->dtype()) && value->rank() <= 1 && value->volume() <= 1024) {
    Value& output = *node->outputs_[0];
    output.elements_.clear();
    for (int64_t i = 0; i < value->volume(); ++i) output.elements_.push_back(value->at(i));
    output.has_elements_ = true;
  }
  return {};
}

Result<> Graph::infer_all() {
  for (const auto& node : nodes_) LATHE_TRY(infer(node.get()));
  return {};
}

Result<> Graph::replace_uses(Value* from, Value* to) {
  const bool same_knowledge = knows_as_much(*from, *to) && (from->constant() || !to->constant());
  redirect_uses(from, to);
  return same_knowledge ? Result<>() : infer_readers(to);
}

Result<> Graph::infer_readers(Value* value) {
  std::unordered_set<const Node*> due;
  const auto add_readers = [&](const Value& changed) {
    for (const Use& use : changed.uses()) due.insert(use.node);
  };
  add_readers(*value);
  for (auto it = value->producer_ ? value->producer_->position_ : nodes_.begin(); it != nodes_.end() && !due.empty();
       ++it) {
    Node* node = it->get();
    if (due.erase(node) == 0) continue;
    std::vector<Value> before;
    for (const auto& output : node->outputs_) before.push_back(*output);
    LATHE_TRY(infer(node));
    for (size_t i = 0; i < before.size(); ++i)
      if (!knows_as_much(before[i], *node->outputs_[i])) add_readers(*node->outputs_[i]);
  }
  return {};
}

}  // namespace lathe::ir
