// SPDX-License-Identifier: Apache-2.0
// The graph IR: what a network is, from import to region grouping. Nodes apply ops of ops/ops.def to values; the graph
// owns both. Every value has a type with symbolic dims at all times: adding or changing a node runs its shape rule.
// Not thread-safe; pointers to nodes and values stay valid until erased.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ops/derivation.h"

namespace lathe::ir {

class Graph;
class Node;

struct Use {
  Node* node;
  size_t index;  // which input of the node
  bool operator==(const Use&) const = default;
};

// Symbols for the dimensions of a loop's carried values that differ from round to round: by the number of the value and
// that of the dimension.
using CarriedDims = std::map<std::pair<size_t, size_t>, Expr>;

class Value {
 public:
  const std::string& name() const { return name_; }
  const ValueType& type() const { return type_; }
  const Shape& shape() const { return type_.shape; }
  DType dtype() const { return type_.dtype; }
  int rank() const { return type_.rank(); }
  Node* producer() const { return producer_; }  // null for graph inputs
  size_t index() const { return index_; }       // among the producer's outputs, or the graph's inputs
  const std::vector<Use>& uses() const { return uses_; }
  bool is_graph_output() const { return output_count_ > 0; }
  // Read by exactly one operand and not a graph output: may be absorbed into its reader.
  bool has_single_use() const { return uses_.size() == 1 && output_count_ == 0; }
  const Tensor* constant() const;  // content when the producer is a constant node, and it stays what it is
  // The same also of a constant that follows from weights which can be replaced: what it holds now, and nobody may rely
  // on but who computes another constant of it, along with the derivation.
  const Tensor* content() const;
  Known known() const;  // content and derivation; nothing where there is no content
  // Integer contents, where they are known: see InferContext.
  const std::vector<Expr>* elements() const { return all_known(elements_) ? partial_elements() : nullptr; }
  const std::vector<Expr>* partial_elements() const { return has_elements_ ? &elements_ : nullptr; }

 private:
  friend class Graph;
  std::string name_;
  ValueType type_;
  Node* producer_ = nullptr;
  size_t index_ = 0;
  std::vector<Use> uses_;
  int output_count_ = 0;
  std::vector<Expr> elements_;
  bool has_elements_ = false;
};

class Node {
 public:
  Node();
  ~Node();  // where Graph is complete
  OpKind kind() const { return attributes_->kind(); }
  const OpInfo& info() const { return op_info(kind()); }
  bool is(OpKind kind) const { return this->kind() == kind; }
  bool has_trait(uint32_t trait) const { return info().traits & trait; }
  const Attributes& attributes() const { return *attributes_; }
  template <class A>
  const A& attrs() const {
    return static_cast<const A&>(*attributes_);
  }

  const std::string& name() const { return name_; }
  // The names of the network's layers (ONNX nodes) that this node stands for.
  const std::vector<std::string>& origin() const { return origin_; }
  std::string metadata;      // the application's, shown by the inspector
  DerivationPtr derivation;  // of a constant that follows from weights which can be replaced; else null

  // What its shape rule relies on and could not prove from the ranges that the symbols had when it last ran. `where`
  // names the node.
  const std::vector<Constraint>& constraints() const { return constraints_; }

  // Of control flow (kControlFlow): what it runs. They share the symbols of the graph that the node is in, and see no
  // values of it but as their inputs.
  const std::vector<std::unique_ptr<Graph>>& bodies() const { return bodies_; }
  const CarriedDims& carried_dims() const { return carried_dims_; }
  // Symbols that the bodies make for themselves: each round of a loop has its own values of them.
  std::vector<SymbolId> inner_symbols() const;

  size_t num_inputs() const { return inputs_.size(); }
  size_t num_outputs() const { return outputs_.size(); }
  Value* input(size_t i) const { return i < inputs_.size() ? inputs_[i] : nullptr; }  // null = omitted
  Value* output(size_t i = 0) const { return outputs_[i].get(); }
  const std::vector<Value*>& inputs() const { return inputs_; }

  // Of a constant, in a graph that is lowered and then gone: lets go of the content. Its type and dims stay known.
  void release_content();

 private:
  friend class Graph;
  std::unique_ptr<Attributes> attributes_;
  std::string name_;
  std::vector<std::string> origin_;
  std::vector<Value*> inputs_;
  std::vector<std::unique_ptr<Value>> outputs_;
  std::map<std::string, Expr> symbols_;  // what and where, and the computed symbol that the shape rule made for it
  std::vector<std::unique_ptr<Graph>> bodies_;
  CarriedDims carried_dims_;  // of a loop
  std::vector<Constraint> constraints_;
  std::list<std::unique_ptr<Node>>::iterator position_;
};

struct Output {
  std::string name;
  Value* value;
};

// What a new node is called and stands for.
struct NodeName {
  std::string name;                  // made unique; empty = the op's name
  std::vector<std::string> origin;   // empty = {name}
  std::vector<std::string> outputs;  // value names, made unique; missing ones derive from the node's name
};

class Graph {
 public:
  explicit Graph(std::string name = "network") : name_(std::move(name)), table_(std::make_shared<Symbols>()) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;
  Graph clone() const;
  // Bodies for a node that is to be like this one.
  std::vector<std::unique_ptr<Graph>> clone_bodies(const Node& node) const;
  // A graph that is to be a body of a node of this one with these attributes and inputs, from which its own inputs take
  // their types. A carried value's dimension (number of the value, of the dimension) may be known not to stay.
  Result<std::unique_ptr<Graph>> make_body(std::string name, const Attributes& attributes,
                                           const std::vector<Value*>& operands,
                                           const CarriedDims& carried_dims = {}) const;

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

  // Symbols. A dimension symbol of inputs is shared by its name: equal names mean equal dims.
  Expr dim_symbol(const std::string& name, Range range = {0, Range::kUnbounded});
  Expr new_symbol(Symbol symbol);
  const std::vector<Symbol>& symbols() const { return table_->symbols; }
  void set_range(SymbolId id, Range range);
  const std::vector<Range>& symbol_ranges() const { return table_->ranges; }  // of symbols(), in their order
  std::vector<std::string> symbol_names() const;
  // What is known to hold of symbols beside their ranges: each an `expand`. Shape rules rely on it without stating it.
  const std::vector<Constraint>& expansions() const { return table_->expansions; }
  void add_expansion(Constraint expansion) { table_->expansions.push_back(std::move(expansion)); }
  // Puts values[i] in the place of symbol i in the inputs' dimensions; the caller runs infer_all() when done.
  void substitute_input_dims(std::span<const Expr> values);
  // Puts the second symbol of inputs' dimensions in the first one's place in the inputs, and gives what stands for each
  // symbol now; the caller runs infer_all() when done.
  std::vector<Expr> merge_symbols(SymbolId from, SymbolId to);

  // Inputs and outputs. A dim of -1 in the second form becomes a symbol of its own. Small integer inputs get symbolic
  // elements (SymbolSource::input_value), so that shapes computed from them are expressions.
  Result<Value*> add_input(std::string name, DType dtype, Shape shape);
  Result<Value*> add_input(std::string name, DType dtype, const Dims& dims);
  // Of a body: one more input, a value from outside that comes in as it is.
  Value* add_shared_input(const Value* from);
  void remove_input(Value* value);  // must have no uses; those behind it move up by one
  const std::vector<Value*>& inputs() const { return inputs_view_; }
  void add_output(Value* value, std::string name = {});  // name: empty = the value's
  void remove_output(size_t i);
  void set_output(size_t i, Value* value);
  const std::vector<Output>& outputs() const { return outputs_; }
  Value* find_value(std::string_view name) const;  // linear; for messages and tests
  void rename(Value* value, std::string name);
  // Changes an input's type; the caller runs infer_all() when done.
  void set_input_type(Value* value, ValueType type);

  // Nodes, in an order in which every value is produced before it is read. New nodes go before `before` (null = at the
  // end). Fails, changing nothing, when arity or the shape rule refuses; the message names the node and its inputs.
  const std::list<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  size_t num_nodes() const { return nodes_.size(); }
  Result<Node*> add(const Attributes& attributes, std::vector<Value*> inputs, NodeName name = {},
                    size_t num_outputs = 1, Node* before = nullptr);
  // The same of control flow, whose bodies make_body() gave.
  Result<Node*> add(const Attributes& attributes, std::vector<std::unique_ptr<Graph>> bodies,
                    std::vector<Value*> inputs, NodeName name, size_t num_outputs, Node* before = nullptr);
  Result<Value*> add_value(const Attributes& attributes, std::vector<Value*> inputs, NodeName name = {},
                           Node* before = nullptr);
  Result<Value*> add_constant(Tensor value, std::string name = {}, Node* before = nullptr);
  Result<Value*> add_known(Known value, NodeName name, Node* before = nullptr);
  void erase(Node* node);                                       // its outputs must have no uses
  size_t erase_dead_nodes();                                    // those that no output needs; returns how many
  Result<> set_inputs(Node* node, std::vector<Value*> inputs);  // runs the shape rule of this node only
  Result<> set_input(Node* node, size_t i, Value* value);
  Result<> set_attributes(Node* node, const Attributes& attributes);
  // Of control flow: an operand that comes into the bodies as it is, and that they do not read.
  Result<> remove_shared_operand(Node* node, size_t i);
  void rename(Node* node, std::string name);
  void add_origin(Node* node, const std::vector<std::string>& names);  // what a rewrite absorbs, its nodes inherit
  // Readers (and graph outputs) of `from` take `to`; shape rules downstream run when more or less is known of it.
  Result<> replace_uses(Value* from, Value* to);
  // The same without running shape rules; `to` may come later than readers of `from` until sort() is called.
  void redirect_uses(Value* from, Value* to);
  Result<> sort();             // restores the order of nodes, moving as few as it can; fails on a cycle
  Result<> infer(Node* node);  // this node's shape rule
  Result<> infer_all();        // every node's, in order

  // Changes with content: structure, attributes, types, names of inputs and outputs.
  uint64_t hash() const;

 private:
  struct Inferred {
    std::vector<InferContext::Output> outputs;
    std::vector<Constraint> constraints;
  };
  struct Symbols {
    std::vector<Symbol> symbols;
    std::vector<Range> ranges;  // theirs: shape rules ask for all of them each time
    std::vector<Constraint> expansions;
  };

  Result<Inferred> run_rule(Node* node);
  Result<> infer_bodies(Node* node);
  static InferContext::Results results_of(const Graph& body, const Node& node);
  struct BodyInput {
    ValueType type;
    const Value* value = nullptr;  // that comes in as it is
  };
  static Result<std::vector<BodyInput>> body_inputs(const Attributes& attributes, const std::vector<Value*>& operands,
                                                    const CarriedDims& carried_dims);
  static Result<> infer_body(Graph& body, Node* node);
  Result<bool> widen_carried(Node* node, size_t i);
  void set_body_input(size_t i, const BodyInput& from);
  Graph clone(std::shared_ptr<Symbols> table) const;
  void bind_all_dims();
  void bind_dims(const Value& input);
  Result<> infer_readers(Value* value);  // and theirs, as far as what is known changes
  std::string unique(std::string name, std::unordered_map<std::string, int>& used) const;
  void link(Node* node);
  void unlink(Node* node);

  std::string name_;
  std::shared_ptr<Symbols> table_;  // with its bodies
  bool is_body_ = false;
  std::vector<std::unique_ptr<Value>> inputs_;
  std::vector<Value*> inputs_view_;
  std::vector<Output> outputs_;
  std::list<std::unique_ptr<Node>> nodes_;
  std::unordered_map<std::string, int> value_names_;
  std::unordered_map<std::string, int> node_names_;
};

// "f32[n, 3, 224, 224]".
std::string to_string(const ValueType& type, const Graph& graph);

// The same for messages: a dimension that is a long expression stands as "...".
std::string to_brief_string(const ValueType& type, const Graph& graph);

// The rules every graph keeps: order, links, arity, unique names, types equal to what the shape rules give.
Result<> verify(const Graph& graph);

// Text form; parse_graph(to_text(g)) equals g but for computed symbols' ids. Constants of more than `max_elements`
// elements print as "{#hash}", which does not parse back. In written text "{~7}" stands for seeded random content.
std::string to_text(const Graph& graph, int64_t max_elements = INT64_MAX);
Result<Graph> parse_graph(std::string_view text);

}  // namespace lathe::ir
