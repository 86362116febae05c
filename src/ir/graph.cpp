// SPDX-License-Identifier: Apache-2.0
#include "ir/graph.h"

#include <algorithm>
#include <unordered_set>

#include "base/hash.h"

namespace lathe::ir {
namespace {

// Shape values are short; longer integer inputs are data.
constexpr int64_t kMaxInputElements = 64;

void remove_use(std::vector<Use>& uses, const Use& use) {
  const auto it = std::find(uses.begin(), uses.end(), use);
  if (it != uses.end()) uses.erase(it);
}

// Whether shape rules downstream see the same type and contents.
bool knows_as_much(const Value& a, const Value& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape() || !a.elements() != !b.elements()) return false;
  return !a.elements() || *a.elements() == *b.elements();
}

}  // namespace

const Tensor* Value::constant() const {
  return producer_ && producer_->is(OpKind::constant) ? &producer_->attrs<ConstantAttrs>().value : nullptr;
}

// Symbols

Expr Graph::dim_symbol(const std::string& name, Range range) {
  for (SymbolId id = 0; id < symbols_.size(); ++id)
    if (symbols_[id].source == SymbolSource::input_dim && symbols_[id].name == name) return Expr::symbol(id);
  // The input that binds it is filled in by add_input.
  return new_symbol({name, SymbolSource::input_dim, UINT32_MAX, 0, range});
}

Expr Graph::new_symbol(Symbol symbol) {
  ranges_.push_back(symbol.range);
  symbols_.push_back(std::move(symbol));
  return Expr::symbol(static_cast<SymbolId>(symbols_.size() - 1));
}

void Graph::set_range(SymbolId id, Range range) { symbols_[id].range = ranges_[id] = range; }

std::vector<std::string> Graph::symbol_names() const {
  std::vector<std::string> names;
  for (const Symbol& symbol : symbols_) names.push_back(symbol.name);
  return names;
}

// Inputs and outputs

Result<Value*> Graph::add_input(std::string name, DType dtype, Shape shape) {
  if (name.empty() || value_names_.contains(name))
    return fail(ErrorCode::graph_invalid, "input name '{}' is empty or already taken", name);
  auto value = std::make_unique<Value>();
  value->name_ = unique(std::move(name), value_names_);
  value->index_ = inputs_.size();
  inputs_view_.push_back(value.get());
  inputs_.push_back(std::move(value));
  set_input_type(inputs_view_.back(), {dtype, std::move(shape)});
  return inputs_view_.back();
}

Result<Value*> Graph::add_input(std::string name, DType dtype, const Dims& dims) {
  Shape shape;
  for (size_t i = 0; i < dims.size(); ++i)
    shape.push_back(dims[i] >= 0 ? Expr(dims[i]) : dim_symbol(fmt::format("{}.{}", name, i)));
  return add_input(std::move(name), dtype, std::move(shape));
}

void Graph::set_input_type(Value* value, ValueType type) {
  value->type_ = std::move(type);
  const auto tensor = static_cast<uint32_t>(value->index_);
  bind_all_dims();
  value->elements_.clear();
  value->has_elements_ = false;
  const std::optional<int64_t> count = volume(value->shape()).as_constant();
  if (!is_integer(value->dtype()) || value->rank() > 1 || !count || *count > kMaxInputElements) return;
  for (uint32_t i = 0; i < *count; ++i)
    value->elements_.push_back(
        new_symbol({fmt::format("{}[{}]", value->name(), i), SymbolSource::input_value, tensor, i, Range{}}));
  value->has_elements_ = true;
}

void Graph::remove_input(Value* value) {
  const size_t removed = value->index_;
  value_names_.erase(value->name_);
  inputs_view_.erase(inputs_view_.begin() + static_cast<ptrdiff_t>(removed));
  inputs_.erase(inputs_.begin() + static_cast<ptrdiff_t>(removed));
  for (size_t i = 0; i < inputs_.size(); ++i) inputs_[i]->index_ = i;
  for (Symbol& symbol : symbols_) {
    if (symbol.source != SymbolSource::input_value || symbol.tensor < removed || symbol.tensor == UINT32_MAX) continue;
    symbol.tensor = symbol.tensor == removed ? UINT32_MAX : symbol.tensor - 1;
  }
  bind_all_dims();
}

// Each symbol of inputs' dimensions to the first input that has it; one that none has any more, to none.
void Graph::bind_all_dims() {
  for (Symbol& symbol : symbols_)
    if (symbol.source == SymbolSource::input_dim) symbol.tensor = UINT32_MAX;
  for (const Value* input : inputs_view_) bind_dims(*input);
}

// Symbols that no input defines yet take the first dimension of this one that is the symbol alone.
void Graph::bind_dims(const Value& input) {
  for (size_t d = 0; d < input.shape().size(); ++d) {
    const std::optional<SymbolId> id = input.shape()[d].as_symbol();
    if (!id || symbols_[*id].source != SymbolSource::input_dim || symbols_[*id].tensor != UINT32_MAX) continue;
    symbols_[*id].tensor = static_cast<uint32_t>(input.index());
    symbols_[*id].index = static_cast<uint32_t>(d);
  }
}

void Graph::add_output(Value* value, std::string name) {
  ++value->output_count_;
  if (name.empty()) name = value->name();
  outputs_.push_back({std::move(name), value});
}

void Graph::remove_output(size_t i) {
  --outputs_[i].value->output_count_;
  outputs_.erase(outputs_.begin() + static_cast<ptrdiff_t>(i));
}

void Graph::set_output(size_t i, Value* value) {
  --outputs_[i].value->output_count_;
  ++value->output_count_;
  outputs_[i].value = value;
}

Value* Graph::find_value(std::string_view name) const {
  for (Value* input : inputs_view_)
    if (input->name() == name) return input;
  for (const auto& node : nodes_)
    for (size_t i = 0; i < node->num_outputs(); ++i)
      if (node->output(i)->name() == name) return node->output(i);
  return nullptr;
}

std::string Graph::unique(std::string name, std::unordered_map<std::string, int>& used) const {
  const auto [it, fresh] = used.try_emplace(name, 0);
  if (fresh) return name;
  for (;;) {
    std::string candidate = fmt::format("{}_{}", name, ++used[name]);
    if (used.try_emplace(candidate, 0).second) return candidate;
  }
}

void Graph::rename(Value* value, std::string name) {
  value_names_.erase(value->name_);
  value->name_ = unique(std::move(name), value_names_);
}

void Graph::rename(Node* node, std::string name) {
  node_names_.erase(node->name_);
  node->name_ = unique(std::move(name), node_names_);
}

void Graph::add_origin(Node* node, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (std::find(node->origin_.begin(), node->origin_.end(), name) == node->origin_.end())
      node->origin_.push_back(name);
}

// Nodes

Result<Graph::Inferred> Graph::run_rule(Node* node) {
  std::vector<InferContext::Input> inputs;
  for (Value* value : node->inputs_)
    inputs.push_back(value ? InferContext::Input{&value->type(), value->constant(), value->elements()}
                           : InferContext::Input{});
  size_t calls = 0;
  const auto fresh = [&](std::string_view hint) {
    if (calls == node->symbols_.size()) {
      node->symbols_.push_back(new_symbol(
          {fmt::format("{}.{}{}", node->name(), hint, calls), SymbolSource::computed, 0, 0, {0, Range::kUnbounded}}));
    }
    return node->symbols_[calls++];
  };
  InferContext context(node->attributes(), inputs, node->num_outputs(), fresh, &ranges_);
  const OpInfo& info = node->info();
  if (!info.infer) return fail(ErrorCode::op_unsupported, "op {} is not available", info.name);
  if (Result<> result = info.infer(context); !result) {
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

void Graph::link(Node* node) {
  for (size_t i = 0; i < node->inputs_.size(); ++i)
    if (node->inputs_[i]) node->inputs_[i]->uses_.push_back({node, i});
}

void Graph::unlink(Node* node) {
  for (size_t i = 0; i < node->inputs_.size(); ++i)
    if (node->inputs_[i]) remove_use(node->inputs_[i]->uses_, {node, i});
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
      value && !is_floating(value->dtype()) && value->rank() <= 1 && value->volume() <= 1024) {
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

Result<Node*> Graph::add(const Attributes& attributes, std::vector<Value*> inputs, NodeName name, size_t num_outputs,
                         Node* before) {
  const OpInfo& info = op_info(attributes.kind());
  while (!inputs.empty() && !inputs.back()) inputs.pop_back();
  const auto count = static_cast<int>(inputs.size());
  if (name.name.empty()) name.name = name.outputs.empty() ? std::string(info.name) : name.outputs[0];
  if (count < info.min_inputs || count > info.max_inputs)
    return fail(ErrorCode::graph_invalid, "{} '{}' takes {} to {} inputs, got {}", info.name, name.name,
                info.min_inputs, info.max_inputs, count);
  for (int i = 0; i < info.min_inputs; ++i)
    if (!inputs[static_cast<size_t>(i)])
      return fail(ErrorCode::graph_invalid, "{} '{}': input {} is required", info.name, name.name, i);
  if (static_cast<int>(num_outputs) < info.min_outputs || static_cast<int>(num_outputs) > info.max_outputs)
    return fail(ErrorCode::graph_invalid, "{} '{}' has {} to {} outputs, asked for {}", info.name, name.name,
                info.min_outputs, info.max_outputs, num_outputs);

  auto node = std::make_unique<Node>();
  node->attributes_ = attributes.clone();
  node->name_ = unique(std::move(name.name), node_names_);
  node->origin_ = std::move(name.origin);
  if (node->origin_.empty()) node->origin_ = {node->name_};
  node->inputs_ = std::move(inputs);
  for (size_t i = 0; i < num_outputs; ++i) {
    auto value = std::make_unique<Value>();
    value->producer_ = node.get();
    value->index_ = i;
    node->outputs_.push_back(std::move(value));
  }
  if (Result<> inferred = infer(node.get()); !inferred) {
    node_names_.erase(node->name_);
    return fail(std::move(inferred).error());
  }
  for (size_t i = 0; i < num_outputs; ++i) {
    std::string given = i < name.outputs.size() && !name.outputs[i].empty() ? name.outputs[i]
                        : i == 0                                            ? node->name_
                                                                            : fmt::format("{}:{}", node->name_, i);
    node->outputs_[i]->name_ = unique(std::move(given), value_names_);
  }
  link(node.get());
  Node* raw = node.get();
  raw->position_ = nodes_.insert(before ? before->position_ : nodes_.end(), std::move(node));
  return raw;
}

Result<Value*> Graph::add_value(const Attributes& attributes, std::vector<Value*> inputs, NodeName name, Node* before) {
  LATHE_ASSIGN(Node * node, add(attributes, std::move(inputs), std::move(name), 1, before));
  return node->output();
}

Result<Value*> Graph::add_constant(Tensor value, std::string name, Node* before) {
  ConstantAttrs attributes;
  attributes.value = std::move(value);
  return add_value(attributes, {}, {std::move(name), {}, {}}, before);
}

Result<Value*> Graph::add_ints(const Ints& values, Node* before) {
  return add_constant(Tensor::from<int64_t>({static_cast<int64_t>(values.size())}, values), {}, before);
}

void Graph::erase(Node* node) {
  unlink(node);
  node_names_.erase(node->name_);
  for (const auto& output : node->outputs_) value_names_.erase(output->name_);
  nodes_.erase(node->position_);
}

size_t Graph::erase_dead_nodes() {
  size_t erased = 0;
  for (auto it = nodes_.end(); it != nodes_.begin();) {
    Node* node = std::prev(it)->get();
    const bool needed = std::any_of(node->outputs_.begin(), node->outputs_.end(), [](const auto& output) {
      return !output->uses_.empty() || output->is_graph_output();
    });
    if (needed) {
      --it;
    } else {
      erase(node);
      ++erased;
    }
  }
  return erased;
}

Result<> Graph::set_inputs(Node* node, std::vector<Value*> inputs) {
  while (!inputs.empty() && !inputs.back()) inputs.pop_back();
  const auto count = static_cast<int>(inputs.size());
  if (count < node->info().min_inputs || count > node->info().max_inputs)
    return fail(ErrorCode::graph_invalid, "{} '{}' cannot have {} inputs", node->info().name, node->name(), count);
  unlink(node);
  std::swap(node->inputs_, inputs);
  Result<> inferred = infer(node);
  if (!inferred) std::swap(node->inputs_, inputs);
  link(node);
  return inferred;
}

Result<> Graph::set_input(Node* node, size_t i, Value* value) {
  std::vector<Value*> inputs = node->inputs_;
  if (i >= inputs.size()) inputs.resize(i + 1);
  inputs[i] = value;
  return set_inputs(node, std::move(inputs));
}

Result<> Graph::set_attributes(Node* node, const Attributes& attributes) {
  std::unique_ptr<Attributes> old = std::exchange(node->attributes_, attributes.clone());
  Result<> inferred = infer(node);
  if (!inferred) node->attributes_ = std::move(old);
  return inferred;
}

void Graph::redirect_uses(Value* from, Value* to) {
  const std::vector<Use> uses = std::exchange(from->uses_, {});
  for (const Use& use : uses) {
    use.node->inputs_[use.index] = to;
    to->uses_.push_back(use);
  }
  for (Output& output : outputs_) {
    if (output.value != from) continue;
    output.value = to;
    --from->output_count_;
    ++to->output_count_;
  }
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

Result<> Graph::sort() {
  // Each node goes after its producers: depth first, producers on the stack that are not placed yet come first.
  std::list<std::unique_ptr<Node>> sorted;
  std::unordered_set<const Node*> placed, open;
  std::vector<Node*> stack;
  std::vector<Node*> order;
  for (const auto& node : nodes_) order.push_back(node.get());
  for (Node* root : order) {
    stack.push_back(root);
    while (!stack.empty()) {
      Node* node = stack.back();
      const size_t depth = stack.size();
      if (!placed.contains(node)) {
        for (const Value* input : node->inputs_) {
          Node* producer = input ? input->producer_ : nullptr;
          if (!producer || placed.contains(producer)) continue;
          if (open.contains(producer) || producer == node) {
            nodes_.splice(nodes_.begin(), sorted);
            return fail(ErrorCode::graph_invalid, "node '{}' depends on its own output", producer->name());
          }
          stack.push_back(producer);
        }
        open.insert(node);
        if (stack.size() > depth) continue;
        placed.insert(node);
        sorted.splice(sorted.end(), nodes_, node->position_);
      }
      open.erase(node);
      stack.pop_back();
    }
  }
  nodes_ = std::move(sorted);
  return {};
}

uint64_t Graph::hash() const {
  Hasher hasher;
  std::unordered_map<const Value*, uint64_t> ids;
  const auto add_type = [&](const ValueType& type) {
    hasher.add(static_cast<uint64_t>(type.dtype));
    for (const Expr& dim : type.shape) hasher.add(dim.hash());
    hasher.add(type.shape.size());
  };
  for (const Value* input : inputs_view_) {
    ids.emplace(input, ids.size());
    hasher.add(input->name());
    add_type(input->type());
  }
  for (const auto& node : nodes_) {
    hasher.add(lathe::hash(node->attributes()));
    for (const Value* input : node->inputs_) hasher.add(input ? ids.at(input) : UINT64_MAX);
    for (const auto& output : node->outputs_) {
      ids.emplace(output.get(), ids.size());
      add_type(output->type());
    }
  }
  for (const Output& output : outputs_) hasher.add(output.name).add(ids.at(output.value));
  return hasher.value();
}

Graph Graph::clone() const {
  Graph copy(name_);
  copy.symbols_ = symbols_;
  copy.ranges_ = ranges_;
  copy.value_names_ = value_names_;
  copy.node_names_ = node_names_;
  std::unordered_map<const Value*, Value*> map;
  const auto copy_value = [&](const Value& value, Node* producer) {
    auto twin = std::make_unique<Value>(value);
    twin->producer_ = producer;
    twin->uses_.clear();
    map.emplace(&value, twin.get());
    return twin;
  };
  for (const auto& input : inputs_) {
    copy.inputs_.push_back(copy_value(*input, nullptr));
    copy.inputs_view_.push_back(copy.inputs_.back().get());
  }
  for (const auto& node : nodes_) {
    auto twin = std::make_unique<Node>();
    twin->attributes_ = node->attributes_->clone();
    twin->name_ = node->name_;
    twin->origin_ = node->origin_;
    twin->metadata = node->metadata;
    twin->symbols_ = node->symbols_;
    twin->constraints_ = node->constraints_;
    for (const Value* input : node->inputs_) twin->inputs_.push_back(input ? map.at(input) : nullptr);
    for (const auto& output : node->outputs_) twin->outputs_.push_back(copy_value(*output, twin.get()));
    copy.link(twin.get());
    Node* raw = twin.get();
    raw->position_ = copy.nodes_.insert(copy.nodes_.end(), std::move(twin));
  }
  for (const Output& output : outputs_) copy.outputs_.push_back({output.name, map.at(output.value)});
  return copy;
}

std::string to_brief_string(const ValueType& type, const Graph& graph) {
  constexpr size_t kLong = 60;
  const std::vector<std::string> names = graph.symbol_names();
  std::string dims;
  for (const Expr& dim : type.shape) {
    const std::string text = dim.to_string(names);
    dims += fmt::format("{}{}", dims.empty() ? "" : ", ", text.size() <= kLong ? text : "...");
  }
  return fmt::format("{}[{}]", name_of(type.dtype), dims);
}

std::string to_string(const ValueType& type, const Graph& graph) {
  return std::string(name_of(type.dtype)) + lathe::to_string(type.shape, graph.symbol_names());
}

}  // namespace lathe::ir
