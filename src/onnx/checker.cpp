// SPDX-License-Identifier: Apache-2.0
#include "onnx/checker.h"

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace lathe::onnx {
namespace {

using Names = std::unordered_set<std::string_view>;
using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;  // domain, name, overload

constexpr size_t kMaxProblems = 200;  // nobody reads more

// Names visible in a graph, innermost first.
struct Scope {
  const Scope* outer = nullptr;
  Names names;
  bool has(std::string_view name) const {
    for (const Scope* s = this; s; s = s->outer)
      if (s->names.contains(name)) return true;
    return false;
  }
};

class Checker {
 public:
  explicit Checker(const Model& model) : model_(model) {}
  Result<> run();

 private:
  template <class... Args>
  void report(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
    if (problems_.size() < kMaxProblems)
      problems_.push_back(Error{code, where_ + fmt::format(format, std::forward<Args>(args)...), {}});
  }
  template <class... Args>
  void invalid(fmt::format_string<Args...> format, Args&&... args) {
    report(ErrorCode::model_invalid, format, std::forward<Args>(args)...);
  }

  void check_versions();
  void check_imports(const std::vector<OpsetImport>& imports);
  void check_graph(const GraphProto& graph, const Scope* outer);
  void check_nodes(const std::vector<NodeProto>& nodes, Scope& scope);
  void check_node(const NodeProto& node, size_t index, Scope& scope);
  void check_order(const std::vector<NodeProto>& nodes, const Scope& scope);
  void check_functions();
  void check_recursion();
  void collect_calls(const std::vector<NodeProto>& nodes, std::set<FunctionKey>& calls) const;

  const Model& model_;
  std::vector<Error> problems_;
  std::string where_;  // prefix of messages: the function or subgraph being checked
  std::map<std::string_view, int64_t> imports_;
  bool in_function_ = false;
};

bool is_known(AttributeKind kind) { return kind >= AttributeKind::real && kind <= AttributeKind::types; }

void Checker::check_versions() {
  if (model_.ir_version < kOldestIrVersion || model_.ir_version > kNewestIrVersion)
    report(ErrorCode::opset_unsupported, "IR version {} is not supported, only {} to {}; convert the model",
           model_.ir_version, kOldestIrVersion, kNewestIrVersion);
  if (model_.opset_imports.empty()) invalid("the model imports no operator set; opset_import is missing");
}

void Checker::check_imports(const std::vector<OpsetImport>& imports) {
  imports_.clear();
  for (const OpsetImport& import : imports) {
    const auto [known, fresh] = imports_.emplace(import.domain, import.version);
    if (!fresh && known->second != import.version)
      invalid("operator set '{}' is imported in versions {} and {}", import.domain, known->second, import.version);
    if (import.domain.empty() && (import.version < 1 || import.version > kNewestOpset))
      report(ErrorCode::opset_unsupported, "operator set ai.onnx version {} is not supported, only 1 to {}",
             import.version, kNewestOpset);
  }
}

void Checker::check_graph(const GraphProto& graph, const Scope* outer) {
  Scope scope{outer, {}};
  for (const ValueInfo& input : graph.inputs) {
    if (input.name.empty())
      invalid("a graph input has no name");
    else if (!scope.names.insert(input.name).second)
      invalid("graph input '{}' occurs twice", input.name);
  }
  Names initializers;
  const auto add_initializer = [&](std::string_view name) {
    if (name.empty())
      invalid("an initializer has no name");
    else if (!initializers.insert(name).second)
      invalid("initializer '{}' occurs twice", name);
    else
      scope.names.insert(name);
  };
  for (const TensorData& tensor : graph.initializers) add_initializer(tensor.name);
  for (const SparseTensorData& tensor : graph.sparse_initializers) add_initializer(tensor.values.name);
  if (!outer && model_.ir_version < 4) {
    Names inputs;
    for (const ValueInfo& input : graph.inputs) inputs.insert(input.name);
    for (const TensorData& tensor : graph.initializers)
      if (!inputs.contains(tensor.name))
        invalid("initializer '{}' is not a graph input, which IR version {} demands", tensor.name, model_.ir_version);
  }
  check_nodes(graph.nodes, scope);
  for (const ValueInfo& output : graph.outputs)
    if (!scope.has(output.name)) invalid("graph output '{}' is produced by no node", output.name);
}

void Checker::check_nodes(const std::vector<NodeProto>& nodes, Scope& scope) {
  const size_t before = problems_.size();
  check_order(nodes, scope);
  const bool ordered = problems_.size() == before;
  if (!ordered)  // already reported; do not report each use again
    for (const NodeProto& node : nodes)
      for (const std::string_view input : node.inputs) scope.names.insert(input);
  Names produced;
  for (size_t i = 0; i < nodes.size(); ++i) {
    check_node(nodes[i], i, scope);
    for (const std::string_view output : nodes[i].outputs) {
      if (output.empty()) continue;
      if (!produced.insert(output).second || (ordered && scope.names.contains(output)))
        invalid("{}: its output '{}' is already defined; every value must be produced once", describe(nodes[i], i),
                output);
      scope.names.insert(output);
    }
  }
}

// Inputs that no earlier node produces: undefined, produced later, or part of a cycle.
void Checker::check_order(const std::vector<NodeProto>& nodes, const Scope& scope) {
  std::unordered_map<std::string_view, size_t> producer;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string_view output : nodes[i].outputs)
      if (!output.empty()) producer.emplace(output, i);
  bool unordered = false;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string_view input : nodes[i].inputs) {
      if (input.empty() || scope.has(input)) continue;
      const auto found = producer.find(input);
      if (found == producer.end())
        invalid("{}: its input '{}' is not defined by a graph input, an initializer or a node", describe(nodes[i], i),
                input);
      else
        unordered |= found->second >= i;
    }
  if (!unordered) return;
  std::vector<std::vector<size_t>> users(nodes.size());
  std::vector<size_t> missing(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string_view input : nodes[i].inputs) {
      const auto found = producer.find(input);
      if (input.empty() || found == producer.end() || scope.has(input)) continue;
      users[found->second].push_back(i);
      ++missing[i];
    }
  std::vector<size_t> ready;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (missing[i] == 0) ready.push_back(i);
  size_t done = 0;
  for (; done < ready.size(); ++done)
    for (const size_t user : users[ready[done]])
      if (--missing[user] == 0) ready.push_back(user);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (missing[i]) {
      invalid("{}: it is part of a cycle, or depends on one", describe(nodes[i], i));
      continue;
    }
    for (const std::string_view input : nodes[i].inputs) {
      const auto found = producer.find(input);
      if (found != producer.end() && found->second > i && !scope.has(input))
        invalid("{}: its input '{}' is produced later, by {}; nodes must be in topological order",
                describe(nodes[i], i), input, describe(nodes[found->second], found->second));
    }
  }
}

void Checker::check_node(const NodeProto& node, size_t index, Scope& scope) {
  if (node.op_type.empty()) invalid("{}: it has no op_type", describe(node, index));
  if (!imports_.contains(node.domain))
    invalid("{}: operator set '{}' is not imported", describe(node, index),
            node.domain.empty() ? "ai.onnx" : node.domain);
  Names names;
  for (const Attribute& attribute : node.attributes) {
    if (attribute.name.empty())
      invalid("{}: an attribute has no name", describe(node, index));
    else if (!names.insert(attribute.name).second)
      invalid("{}: attribute '{}' occurs twice", describe(node, index), attribute.name);
    if (!attribute.reference.empty() && !in_function_)
      invalid("{}: attribute '{}' refers to '{}', which only a function body may", describe(node, index),
              attribute.name, attribute.reference);
    else if (attribute.reference.empty() && !is_known(attribute.kind))
      invalid("{}: attribute '{}' has unknown type {}", describe(node, index), attribute.name,
              static_cast<int32_t>(attribute.kind));
    const std::string outer = where_;
    for (const GraphProto& graph : attribute.graphs) {
      where_ = fmt::format("{}{}, graph '{}': ", outer, describe(node, index), attribute.name);
      check_graph(graph, &scope);
    }
    where_ = outer;
  }
}

void Checker::check_functions() {
  std::set<FunctionKey> keys;
  for (const FunctionProto& function : model_.functions) {
    where_ = fmt::format("function '{}::{}': ", function.domain, function.name);
    if (!keys.insert({normal_domain(function.domain), function.name, function.overload}).second)
      invalid("it is defined twice");
    check_imports(function.opset_imports);
    Scope scope;
    for (const std::string_view input : function.inputs)
      if (!scope.names.insert(input).second) invalid("input '{}' occurs twice", input);
    check_nodes(function.nodes, scope);
    for (const std::string_view output : function.outputs)
      if (!scope.has(output)) invalid("output '{}' is produced by no node", output);
  }
  where_.clear();
  check_recursion();
}

void Checker::collect_calls(const std::vector<NodeProto>& nodes, std::set<FunctionKey>& calls) const {
  for (const NodeProto& node : nodes) {
    calls.insert({node.domain, node.op_type, node.overload});
    for (const Attribute& attribute : node.attributes)
      for (const GraphProto& graph : attribute.graphs) collect_calls(graph.nodes, calls);
  }
}

// Functions whose calls are all of finished functions are finished; what is left calls itself, however indirectly.
void Checker::check_recursion() {
  std::map<FunctionKey, std::set<FunctionKey>> callers;
  std::map<FunctionKey, size_t> waiting;
  for (const FunctionProto& function : model_.functions)
    waiting[{normal_domain(function.domain), function.name, function.overload}] = 0;
  for (const FunctionProto& function : model_.functions) {
    const FunctionKey caller{normal_domain(function.domain), function.name, function.overload};
    std::set<FunctionKey> calls;
    collect_calls(function.nodes, calls);
    for (const FunctionKey& call : calls)
      if (waiting.contains(call) && callers[call].insert(caller).second) ++waiting[caller];
  }
  std::vector<FunctionKey> finished;
  for (const auto& [key, calls] : waiting)
    if (calls == 0) finished.push_back(key);
  while (!finished.empty()) {
    const FunctionKey key = finished.back();
    finished.pop_back();
    waiting.erase(key);
    for (const FunctionKey& caller : callers[key])
      if (--waiting[caller] == 0) finished.push_back(caller);
  }
  for (const auto& [key, calls] : waiting)
    invalid("function '{}::{}' calls itself, or one that does", std::get<0>(key), std::get<1>(key));
}

Result<> Checker::run() {
  check_versions();
  in_function_ = true;
  check_functions();
  in_function_ = false;
  check_imports(model_.opset_imports);
  check_graph(model_.graph, nullptr);
  if (problems_.empty()) return {};
  if (problems_.size() == 1) return fail(std::move(problems_.front()));
  Error error{problems_.front().code, fmt::format("the model has {} faults", problems_.size()), std::move(problems_)};
  return fail(std::move(error));
}

}  // namespace

std::string describe(const NodeProto& node, size_t index) {
  if (node.name.empty()) return fmt::format("node {} ({})", index, node.op_type);
  return fmt::format("node {} '{}' ({})", index, node.name.substr(0, 200), node.op_type);
}

Result<> check_model(const Model& model) { return Checker(model).run(); }

}  // namespace lathe::onnx
