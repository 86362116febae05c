// SPDX-License-Identifier: Apache-2.0
// What the importer of one operator sees of a node, and the means to express it in the IR, whose errors are those of
// the node as a whole.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>

#include "base/source_location.h"
#include "ir/builder.h"
#include "ir/captured.h"
#include "onnx/branches.h"
#include "onnx/int64_weights.h"
#include "onnx/model.h"
#include "onnx/slot.h"

namespace lathe::onnx {

// Imports a nested graph into the place of the node that holds it: its inputs take the given values, and the values of
// its outputs come back; nullopt when it failed, which has been reported then.
using InlineGraph =
    std::function<std::optional<std::vector<Slot>>(const GraphProto& body, const std::vector<Slot>& inputs)>;

// What a nested graph's inputs are in its body, and what becomes of its outputs there: tensors that the body yields.
// Both add nodes to the body, and fail by the builder's error.
struct BodyEdge {
  std::function<std::vector<Slot>(ir::GraphBuilder& inside)> inputs;
  std::function<void(ir::GraphBuilder& inside, const std::vector<Slot>& outputs)> outputs;
};

// Imports a nested graph as a body; false when that failed and was reported, by the edge's builder or by the graph.
using FillBody = std::function<bool(const GraphProto& proto, ir::GraphBuilder& inside, ir::Captured& captured,
                                    const BodyEdge& edge)>;

// Does what may fail. False where it failed, and what it reported has been forgotten; true where it is final.
using Attempt = std::function<bool(const std::function<bool()>& work)>;

// What becomes of nested graphs.
struct NestedGraphs {
  InlineGraph inline_graph;
  FillBody fill_body;
  Attempt attempt;
};

// A format, and where it stands in an importer.
template <class... Args>
struct LocatedFormat {
  template <class Text>
  consteval LocatedFormat(const Text& text, SourceLocation place = SourceLocation::current())
      : format(text), where(place) {}
  fmt::format_string<Args...> format;
  SourceLocation where;
};

using CallAttributes = std::map<std::string_view, const Attribute*>;  // a function call's attributes, by name

class NodeContext : public ir::GraphBuilder {
 public:
  NodeContext(const NodeProto& node, const std::string& name, int64_t version, ir::Graph& graph,
              std::vector<Slot> inputs, const CallAttributes* call, NestedGraphs nested, Branches& branches,
              Int64Weights& int64)
      : GraphBuilder(graph, {name, {name}, {}}, nullptr, node.op_type == "Constant" ? "" : ".constant"),
        node_(node),
        version_(version),
        slots_(std::move(inputs)),
        asked_(slots_.size()),
        outputs_(node.outputs.size()),
        call_(call),
        nested_(std::move(nested)),
        branches_(branches),
        int64_(int64) {
    for (const Slot& slot : slots_) inputs_.push_back(slot.value);
  }

  std::string_view op() const { return node_.op_type; }
  int64_t version() const { return version_; }  // of the node's operator set, as imported

  // Inputs and outputs. An omitted input is null; one that is required is asked for by require().
  size_t num_inputs() const { return inputs_.size(); }
  size_t num_outputs() const { return outputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i]; }
  ir::Value* input(size_t i) const { return has(i) ? inputs_[i] : nullptr; }
  ir::Value* require(size_t i);
  const std::vector<ir::Value*>& inputs() const { return inputs_; }
  bool wants(size_t i) const { return i < outputs_.size() && !node_.outputs[i].empty(); }
  void set_output(size_t i, ir::Value* value) { set_output(i, to_slot(value)); }
  void set_output(size_t i, Slot value);
  void set_outputs(const std::vector<ir::Value*>& values);  // in order
  // As set_output(), but that a tensor becomes a value of its own: an output of the graph is none of its inputs.
  void pass_on(size_t i, Slot value);

  // Inputs that may be sequences and optionals. Of any other operator they are refused, see refuse_unasked().
  const Slot& slot(size_t i);
  const Slot& require_slot(size_t i);
  std::shared_ptr<const Sequence> require_sequence(size_t i);
  const TensorList* open_sequence(size_t i) { return slot(i).open.get(); }  // null where its length is known
  Slot require_element(size_t i);                                           // a tensor, of numbers or of strings
  void refuse_unasked();  // an error if an input that is no tensor was never asked for in this way

  // Inputs and outputs that may be strings, see Slot::text; null where input i is none.
  ir::Value* text(size_t i) { return slot(i).text; }
  ir::Value* require_text(size_t i);
  bool has_texts() const;
  void set_input(size_t i, ir::Value* value);  // in place of strings
  void set_text(size_t i, ir::Value* rows) { set_output(i, to_text_slot(rows)); }
  ir::Value* text_constant(Dims dims, const std::vector<std::string_view>& strings);

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
  Result<Tensor> weight(Result<Tensor> tensor);  // one that the node's attributes hold
  const TypeProto* type(std::string_view name);
  using GraphBuilder::graph;
  const GraphProto* graph(std::string_view name);  // required
  void ignore(std::initializer_list<std::string_view> names);
  const Attribute* attribute(std::string_view name) { return find(name, AttributeKind::undefined); }  // of any kind
  const Attribute* look_at(std::string_view name) const;  // of any kind; it is not read by that
  std::vector<std::string_view> unread_attributes() const;

  // Errors. invalid: the model breaks a rule; unsupported: we cannot do it.
  template <class... Args>
  void invalid(LocatedFormat<std::type_identity_t<Args>...> text, Args&&... args) {
    set_error({ErrorCode::model_invalid, fmt::format(text.format, std::forward<Args>(args)...), {}}, text.where);
  }
  template <class... Args>
  void unsupported(LocatedFormat<std::type_identity_t<Args>...> text, Args&&... args) {
    set_error({ErrorCode::op_mode_unsupported, fmt::format(text.format, std::forward<Args>(args)...), {}}, text.where);
  }
  // What is done differs from what the operator means in a case that the model may never meet; told once for a node.
  void warn(std::string text) { warnings_.push_back(std::move(text)); }
  const std::vector<std::string>& warnings() const { return warnings_; }
  // The outputs of a nested graph that sees these inputs; placeholders after an error.
  std::vector<ir::Value*> run_graph(const GraphProto* body, const std::vector<ir::Value*>& inputs);
  // The same where sequences and optionals go in and come out; nothing after an error.
  std::vector<Slot> run_graph(const GraphProto& body, const std::vector<Slot>& inputs);
  // A nested graph as a body, see FillBody. False after an error.
  bool fill_body(const GraphProto& proto, ir::Graph& body, ir::Captured& captured, const BodyEdge& edge);
  // Adds to the graph what may fail, `work` telling whether it did not. False where it failed, after which the node is
  // as if it had not been tried; true where it is final.
  bool attempt(const std::function<bool()>& work);
  Branches& branches() { return branches_; }
  // x, which must have this shape, told as `what` in the error if it is known that it has not, with `dims`, which says
  // what its dimensions are. What is open becomes a
  // constraint on the volume (that of a reshape), which is as good as one for each dimension where all but one are the
  // same, or where none of x's can be the smaller.
  ir::Value* require_shape(std::string_view what, ir::Value* x, ir::Value* shape, std::string_view dims = {});

  // Helpers that stay in range for placeholders too.
  Expr dim(const ir::Value* value, int64_t axis) const;
  int64_t axis(int64_t axis, int64_t rank);  // non-negative, checked
  // The value's content, worked out where it depends on nothing that only running tells.
  std::optional<Tensor> known(const ir::Value* value) const;
  std::optional<double> constant_scalar(const ir::Value* value) const;

  size_t num_added() const;  // nodes that are no constants
  const std::vector<Slot>& outputs() const { return outputs_; }

 private:
  const Attribute* find(std::string_view name, AttributeKind kind);

  const NodeProto& node_;
  int64_t version_;
  std::vector<Slot> slots_;
  std::vector<bool> asked_;  // for a slot that may be no tensor
  std::vector<ir::Value*> inputs_;
  std::vector<Slot> outputs_;
  const CallAttributes* call_;
  NestedGraphs nested_;
  Branches& branches_;
  Int64Weights& int64_;
  std::set<std::string_view> read_;
  std::vector<std::string> warnings_;
  size_t num_inlined_ = 0;
};

// The content of an ONNX tensor, viewed where alignment allows; fails for types without a DType.
Result<Tensor> to_tensor(const TensorData& data);

}  // namespace lathe::onnx
