// SPDX-License-Identifier: Apache-2.0
// What the importer of one operator sees of a node, and the means to express it in the IR.
//
// Errors stick: after the first, every builder returns a placeholder value and does nothing, and the node is reported
// as a whole. So importers read as the formulas they stand for.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "ir/graph.h"
#include "onnx/model.h"

namespace lathe::onnx {

// Imports a nested graph into the place of the node that holds it: its inputs take the given values, and the values of
// its outputs come back; nullopt when it failed, which has been reported then.
using InlineGraph = std::function<std::optional<std::vector<ir::Value*>>(const GraphProto& body,
                                                                         const std::vector<ir::Value*>& inputs)>;

using CallAttributes = std::map<std::string_view, const Attribute*>;  // a function call's attributes, by name

// Whether two dimensions are known and not the same. What is open is checked, where it can be, by ops' shape rules.
inline bool known_to_differ(const Expr& a, const Expr& b) { return a.is_constant() && b.is_constant() && a != b; }

class NodeContext {
 public:
  NodeContext(const NodeProto& node, std::string name, int64_t version, ir::Graph& graph,
              std::vector<ir::Value*> inputs, const CallAttributes* call, InlineGraph inline_graph)
      : node_(node),
        name_(std::move(name)),
        version_(version),
        graph_(graph),
        inputs_(std::move(inputs)),
        outputs_(node.outputs.size()),
        call_(call),
        inline_graph_(std::move(inline_graph)) {}

  std::string_view op() const { return node_.op_type; }
  int64_t version() const { return version_; }  // of the node's operator set, as imported
  ir::Graph& graph() { return graph_; }

  // Inputs and outputs. An omitted input is null; one that is required is asked for by require().
  size_t num_inputs() const { return inputs_.size(); }
  size_t num_outputs() const { return outputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i]; }
  ir::Value* input(size_t i) const { return has(i) ? inputs_[i] : nullptr; }
  ir::Value* require(size_t i);
  const std::vector<ir::Value*>& inputs() const { return inputs_; }
  bool wants(size_t i) const { return i < outputs_.size() && !node_.outputs[i].empty(); }
  void set_output(size_t i, ir::Value* value);
  void set_outputs(ir::Node* node);  // all outputs of the node, in order

  // Attributes, with the default when absent. One that no importer asked for is reported: it would change the meaning.
  bool has_attribute(std::string_view name);
  int64_t integer(std::string_view name, int64_t fallback);
  int64_t require_integer(std::string_view name);
  bool flag(std::string_view name, bool fallback) { return integer(name, fallback) != 0; }
  double real(std::string_view name, double fallback);
  std::string string(std::string_view name, std::string_view fallback);
  Ints integers(std::string_view name, Ints fallback = {});
  std::vector<double> reals(std::string_view name);
  std::vector<std::string> strings(std::string_view name);
  const TensorData* tensor(std::string_view name);
  const GraphProto* graph(std::string_view name);  // required
  void ignore(std::initializer_list<std::string_view> names);
  std::vector<std::string_view> unread_attributes() const;

  // Errors. invalid: the model breaks a rule; unsupported: we cannot do it.
  template <class... Args>
  void invalid(fmt::format_string<Args...> format, Args&&... args) {
    set_error(Error{ErrorCode::model_invalid, fmt::format(format, std::forward<Args>(args)...), {}});
  }
  template <class... Args>
  void unsupported(fmt::format_string<Args...> format, Args&&... args) {
    set_error(Error{ErrorCode::op_mode_unsupported, fmt::format(format, std::forward<Args>(args)...), {}});
  }
  void set_error(Error error) {
    if (!error_) error_ = std::move(error);
  }
  // The outputs of a nested graph that sees these inputs; placeholders after an error.
  std::vector<ir::Value*> run_graph(const GraphProto* body, const std::vector<ir::Value*>& inputs);
  bool failed() const { return error_.has_value() || failed_inside_; }
  bool failed_inside() const { return failed_inside_; }  // in a nested graph, whose nodes have been reported
  const std::optional<Error>& error() const { return error_; }

  // Builders.
  ir::Node* add_node(const Attributes& attributes, std::vector<ir::Value*> inputs,
                     size_t num_outputs);  // null on error
  ir::Value* add(const Attributes& attributes, std::vector<ir::Value*> inputs);
  ir::Value* constant(Tensor tensor);
  ir::Value* constant(const TensorData& tensor);
  ir::Value* ints(const Ints& values);           // i64[n]
  ir::Value* integer_scalar(int64_t value);      // i64[]
  ir::Value* scalar(double value, DType dtype);  // of rank 0, converted as from_doubles does
  ir::Value* scalar_like(double value, const ir::Value* like) { return scalar(value, like->dtype()); }

  ir::Value* identity(ir::Value* x) { return add(IdentityAttrs{}, {x}); }
  ir::Value* unary(UnaryOp op, ir::Value* x);
  ir::Value* activation(ActivationOp op, ir::Value* x, double alpha = 0, double beta = 0);
  ir::Value* binary(ElementwiseOp op, ir::Value* a, ir::Value* b);
  ir::Value* binary(ElementwiseOp op, ir::Value* a, double b) { return binary(op, a, scalar_like(b, a)); }
  ir::Value* mul(ir::Value* a, ir::Value* b) { return binary(ElementwiseOp::mul, a, b); }
  ir::Value* plus(ir::Value* a, ir::Value* b) { return binary(ElementwiseOp::add, a, b); }
  ir::Value* minus(ir::Value* a, ir::Value* b) { return binary(ElementwiseOp::sub, a, b); }
  ir::Value* divide(ir::Value* a, ir::Value* b) { return binary(ElementwiseOp::div, a, b); }
  ir::Value* select(ir::Value* condition, ir::Value* a, ir::Value* b) { return add(SelectAttrs{}, {condition, a, b}); }
  ir::Value* cast(ir::Value* x, DType to);  // nothing when x has that type
  ir::Value* reduce(ReduceOp op, ir::Value* x, const Ints& axes, bool keepdims);
  ir::Value* matmul(ir::Value* a, ir::Value* b, bool transpose_a = false, bool transpose_b = false);
  ir::Value* softmax(ir::Value* x, int64_t axis, bool log = false);
  ir::Value* reshape(ir::Value* x, ir::Value* shape, bool allow_zero = false);
  ir::Value* reshape(ir::Value* x, const Ints& shape) { return reshape(x, ints(shape)); }
  ir::Value* unsqueeze(ir::Value* x, const Ints& axes) { return add(UnsqueezeAttrs{}, {x, ints(axes)}); }
  ir::Value* squeeze(ir::Value* x, const Ints& axes) { return add(SqueezeAttrs{}, {x, ints(axes)}); }
  ir::Value* transpose(ir::Value* x, const Ints& perm);
  ir::Value* expand(ir::Value* x, ir::Value* shape) { return add(ExpandAttrs{}, {x, shape}); }
  ir::Value* slice(ir::Value* x, int64_t axis, int64_t begin, int64_t end);
  ir::Value* concat(std::vector<ir::Value*> parts, int64_t axis);
  ir::Value* gather(ir::Value* x, ir::Value* indices, int64_t axis);
  ir::Value* shape_of(ir::Value* x, int64_t begin = 0, int64_t end = INT64_MAX);
  ir::Value* fill(ir::Value* shape, Tensor value);
  ir::Value* zeros_like(ir::Value* x);  // broadcast-free: same shape, same type

  // Helpers that stay in range for placeholders too.
  Expr dim(const ir::Value* value, int64_t axis) const;
  int64_t axis(int64_t axis, int64_t rank);  // non-negative, checked
  // The value's content, worked out where it depends on nothing that only running tells.
  std::optional<Tensor> known(const ir::Value* value) const;
  std::optional<Ints> constant_integers(const ir::Value* value) const;
  std::optional<double> constant_scalar(const ir::Value* value) const;

  size_t num_added() const { return num_added_; }
  const std::vector<ir::Value*>& outputs() const { return outputs_; }

 private:
  const Attribute* find(std::string_view name, AttributeKind kind);
  ir::Value* failed_value();

  const NodeProto& node_;
  std::string name_;
  int64_t version_;
  ir::Graph& graph_;
  std::vector<ir::Value*> inputs_;
  std::vector<ir::Value*> outputs_;
  const CallAttributes* call_;
  InlineGraph inline_graph_;
  bool failed_inside_ = false;
  std::set<std::string_view> read_;
  std::optional<Error> error_;
  size_t num_added_ = 0;
};

// The content of an ONNX tensor, viewed where alignment allows; fails for types without a DType.
Result<Tensor> to_tensor(const TensorData& data);

}  // namespace lathe::onnx
