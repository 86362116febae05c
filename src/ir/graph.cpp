// SPDX-License-Identifier: Apache-2.0
#include "ir/graph.h"

#include <algorithm>
#include <unordered_set>

#include "base/hash.h"

namespace lathe::ir {
namespace {

void remove_use(std::vector<Use>& uses, const Use& use) {
  const auto it = std::find(uses.begin(), uses.end(), use);
  if (it != uses.end()) uses.erase(it);
}

}  // namespace

void Node::release_content() {
  Tensor& content = static_cast<ConstantAttrs&>(*attributes_).value;
  content = Tensor::view(content.dtype(), content.dims(), nullptr, nullptr);
}

Node::Node() = default;
Node::~Node() = default;

const Tensor* Value::constant() const { return producer_ && !producer_->derivation ? content() : nullptr; }

const Tensor* Value::content() const {
  return producer_ && producer_->is(OpKind::constant) ? &producer_->attrs<ConstantAttrs>().value : nullptr;
}

Known Value::known() const {
  const Tensor* tensor = content();
  return tensor ? Known{*tensor, producer_->derivation} : Known();
}

// Outputs and names

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

void Graph::link(Node* node) {
  for (size_t i = 0; i < node->inputs_.size(); ++i)
    if (node->inputs_[i]) node->inputs_[i]->uses_.push_back({node, i});
}

void Graph::unlink(Node* node) {
  for (size_t i = 0; i < node->inputs_.size(); ++i)
    if (node->inputs_[i]) remove_use(node->inputs_[i]->uses_, {node, i});
}

Result<Node*> Graph::add(const Attributes& attributes, std::vector<Value*> inputs, NodeName name, size_t num_outputs,
                         Node* before) {
  return add(attributes, {}, std::move(inputs), std::move(name), num_outputs, before);
}

Result<Node*> Graph::add(const Attributes& attributes, std::vector<std::unique_ptr<Graph>> bodies,
                         std::vector<Value*> inputs, NodeName name, size_t num_outputs, Node* before) {
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
  node->bodies_ = std::move(bodies);
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

Result<Value*> Graph::add_known(Known value, NodeName name, Node* before) {
  ConstantAttrs attributes;
  attributes.value = std::move(value.content);
  LATHE_ASSIGN(Value * constant, add_value(attributes, {}, std::move(name), before));
  constant->producer()->derivation = std::move(value.derivation);
  return constant;
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
    for (const auto& body : node->bodies_) hasher.add(body->hash());
    for (const Value* input : node->inputs_) hasher.add(input ? ids.at(input) : UINT64_MAX);
    for (const auto& output : node->outputs_) {
      ids.emplace(output.get(), ids.size());
      add_type(output->type());
    }
  }
  for (const Output& output : outputs_) hasher.add(output.name).add(ids.at(output.value));
  return hasher.value();
}

std::vector<std::unique_ptr<Graph>> Graph::clone_bodies(const Node& node) const {
  std::vector<std::unique_ptr<Graph>> bodies;
  for (const auto& body : node.bodies_) bodies.push_back(std::make_unique<Graph>(body->clone(table_)));
  return bodies;
}

Graph Graph::clone() const { return clone(std::make_shared<Symbols>(*table_)); }

Graph Graph::clone(std::shared_ptr<Symbols> table) const {
  Graph copy(name_);
  copy.table_ = std::move(table);
  copy.is_body_ = is_body_;
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
    twin->derivation = node->derivation;
    twin->symbols_ = node->symbols_;
    twin->constraints_ = node->constraints_;
    twin->carried_dims_ = node->carried_dims_;
    twin->bodies_ = copy.clone_bodies(*node);
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
