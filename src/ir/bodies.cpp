// SPDX-License-Identifier: Apache-2.0
// Types of what is inside of loops and branches.
#include <algorithm>

#include "ir/graph.h"

namespace lathe::ir {
namespace {

constexpr size_t kControls = 2;  // trip count and condition, before a loop's carried values

Result<> check_count(const Node& node, const char* what, size_t is, size_t wanted) {
  if (is == wanted) return {};
  return fail(ErrorCode::graph_invalid, "{} '{}': its body has {} {}, expected {}", node.info().name, node.name(), is,
              what, wanted);
}

}  // namespace

std::vector<SymbolId> Node::inner_symbols() const {
  std::vector<SymbolId> symbols;
  for (const auto& [place, symbol] : carried_dims_) symbols.push_back(*symbol.as_symbol());
  for (const auto& body : bodies_)
    for (const auto& node : body->nodes()) {
      for (const auto& [place, symbol] : node->symbols_) symbols.push_back(*symbol.as_symbol());
      const std::vector<SymbolId> deeper = node->inner_symbols();
      symbols.insert(symbols.end(), deeper.begin(), deeper.end());
    }
  return symbols;
}

// Types of what a body yields; what only running the body tells is Expr::invalid().
InferContext::Results Graph::results_of(const Graph& body, const Node& node) {
  const std::vector<SymbolId> inner = node.inner_symbols();
  InferContext::Results results;
  for (const Output& output : body.outputs_) {
    ValueType type = output.value->type();
    for (Expr& dim : type.shape) {
      std::vector<SymbolId> used;
      dim.collect_symbols(used);
      if (std::any_of(used.begin(), used.end(), [&](SymbolId id) { return std::ranges::count(inner, id) > 0; }))
        dim = Expr::invalid();
    }
    results.push_back(std::move(type));
  }
  return results;
}

// What a body's inputs are, for these operands of the node. What is known of the contents of values that come in as
// they are is known inside, too.
Result<std::vector<Graph::BodyInput>> Graph::body_inputs(const Attributes& attributes,
                                                         const std::vector<Value*>& operands,
                                                         const CarriedDims& carried_dims) {
  std::vector<BodyInput> inputs;
  if (attributes.kind() == OpKind::branch) {
    for (size_t i = 1; i < operands.size(); ++i) inputs.push_back({operands[i]->type(), operands[i]});
    return inputs;
  }
  const auto& attrs = static_cast<const LoopAttrs&>(attributes);
  const size_t scanned = kControls + static_cast<size_t>(attrs.carried), rest = scanned + attrs.scan_axes.size();
  if (operands.size() < rest && rest > kControls)
    return fail(ErrorCode::graph_invalid, "loop: it has {} inputs, but its body takes {} values", operands.size(),
                rest);
  inputs = {{{DType::i64, {}}, nullptr}, {{DType::boolean, {}}, nullptr}};
  for (size_t i = kControls; i < operands.size(); ++i) {
    ValueType type = operands[i]->type();
    if (i < scanned) {
      for (size_t d = 0; d < type.shape.size(); ++d)
        if (const auto symbol = carried_dims.find({i - kControls, d}); symbol != carried_dims.end())
          type.shape[d] = symbol->second;
    } else if (i < rest) {
      const int64_t axis = attrs.scan_axes[i - scanned];
      if (axis < 0 || axis >= type.rank())
        return fail(ErrorCode::graph_invalid, "loop: its scanned value '{}' has no axis {}", operands[i]->name(), axis);
      type.shape.erase(type.shape.begin() + axis);
    }
    inputs.push_back({std::move(type), i < rest ? nullptr : operands[i]});
  }
  return inputs;
}

void Graph::set_body_input(size_t i, const BodyInput& from) {
  Value& input = *inputs_[i];
  input.type_ = from.type;
  input.has_elements_ = from.value && from.value->has_elements_;
  input.elements_ = input.has_elements_ ? from.value->elements_ : std::vector<Expr>();
}

Result<std::unique_ptr<Graph>> Graph::make_body(std::string name, const Attributes& attributes,
                                                const std::vector<Value*>& operands,
                                                const CarriedDims& carried_dims) const {
  LATHE_ASSIGN(const std::vector<BodyInput> inputs, body_inputs(attributes, operands, carried_dims));
  auto body = std::make_unique<Graph>(std::move(name));
  body->table_ = table_;
  body->is_body_ = true;
  for (size_t i = 0; i < inputs.size(); ++i) {
    LATHE_TRY(body->add_input(fmt::format("in{}", i), inputs[i].type.dtype, inputs[i].type.shape));
    body->set_body_input(i, inputs[i]);
  }
  return body;
}

Result<> Graph::infer_body(Graph& body, Node* node) {
  LATHE_ASSIGN(const std::vector<BodyInput> inputs,
               body_inputs(*node->attributes_, node->inputs_, node->carried_dims_));
  LATHE_TRY(check_count(*node, "inputs", body.inputs_.size(), inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) body.set_body_input(i, inputs[i]);
  return body.infer_all();
}

// A carried value has the dimensions that every round keeps; each other one is a symbol of the body.
Result<> Graph::infer_bodies(Node* node) {
  const size_t wanted = node->is(OpKind::loop) ? 1 : 2;
  if (node->bodies_.size() != wanted)
    return fail(ErrorCode::graph_invalid, "{} '{}' has {} bodies, not {}", node->info().name, node->name(),
                node->bodies_.size(), wanted);
  for (bool is_settled = false; !is_settled;) {
    for (const auto& body : node->bodies_) LATHE_TRY(infer_body(*body, node));
    is_settled = true;
    if (!node->is(OpKind::loop)) continue;
    const auto& attrs = node->attrs<LoopAttrs>();
    const auto carried = static_cast<size_t>(attrs.carried);
    LATHE_TRY(check_count(*node, "results", node->bodies_[0]->outputs_.size(), 1 + carried + attrs.stack_axes.size()));
    for (size_t i = 0; i < carried; ++i) {
      LATHE_ASSIGN(const bool widened, widen_carried(node, i));
      is_settled &= !widened;
    }
  }
  return {};
}

// Whether a dimension of the carried value differs from that of the round before, and is a symbol from now on.
Result<bool> Graph::widen_carried(Node* node, size_t i) {
  const Graph& body = *node->bodies_[0];
  const ValueType &begun = body.inputs_[kControls + i]->type(), &left = body.outputs_[1 + i].value->type();
  if (begun.dtype != left.dtype || begun.rank() != left.rank())
    return fail(
        ErrorCode::type_mismatch,
        "loop '{}': its value '{}' is {} when a round begins, but '{}' is {} at its end; the type and the number of "
        "dimensions must stay",
        node->name(), body.inputs_[kControls + i]->name(), to_brief_string(begun, *this), body.outputs_[1 + i].name,
        to_brief_string(left, *this));
  bool widened = false;
  for (size_t d = 0; d < begun.shape.size(); ++d) {
    if (begun.shape[d] == left.shape[d] || node->carried_dims_.contains({i, d})) continue;
    node->carried_dims_[{i, d}] = new_symbol(
        {fmt::format("{}.carried{}.{}", node->name(), i, d), SymbolSource::computed, 0, 0, {0, Range::kUnbounded}});
    widened = true;
  }
  return widened;
}

Value* Graph::add_shared_input(const Value* from) {
  std::string name = from->name();
  while (value_names_.contains(name)) name += ".outside";
  const Result<Value*> input = add_input(std::move(name), from->dtype(), from->shape());
  set_body_input((*input)->index(), {from->type(), from});
  return *input;
}

Result<> Graph::remove_shared_operand(Node* node, size_t i) {
  for (const auto& body : node->bodies_) body->remove_input(body->inputs_view_[node->is(OpKind::branch) ? i - 1 : i]);
  unlink(node);
  node->inputs_.erase(node->inputs_.begin() + static_cast<ptrdiff_t>(i));
  link(node);
  return infer(node);
}

}  // namespace lathe::ir
