// SPDX-License-Identifier: Apache-2.0
// Adds nodes to a graph: what importers, rewrites and the layers of the public interface say ops with.
//
// Errors stick: after the first, every builder returns a placeholder value and does nothing, and whoever made the
// builder asks it for the error. So what is built reads as the formula that it stands for.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace lathe::ir {

// Which operands of a matrix product are transposed: their last two dimensions change places.
struct Transposed {
  bool a = false;
  bool b = false;
};

class GraphBuilder {
 public:
  // Nodes go before `before` (null = at the end) and are called `name`, constants with the suffix: helpers leave the
  // plain name to the op that does the work.
  GraphBuilder(Graph& graph, NodeName name, Node* before = nullptr, std::string constant_suffix = {})
      : graph_(graph), name_(std::move(name)), before_(before), constant_suffix_(std::move(constant_suffix)) {}

  Graph& graph() { return graph_; }
  const std::string& name() const { return name_.name; }

  bool failed() const { return failed_; }
  const std::optional<Error>& error() const { return error_; }
  void set_error(Error error);  // the first counts

  std::vector<Value*> add_all(const Attributes& attributes, std::vector<Value*> inputs, size_t num_outputs);
  Value* add(const Attributes& attributes, std::vector<Value*> inputs);  // the one output
  // Control flow; null after an error.
  Node* add_node(const Attributes& attributes, std::vector<std::unique_ptr<Graph>> bodies, std::vector<Value*> inputs,
                 size_t num_outputs);
  void remove_node(Node* node);  // the one that was added last
  Value* constant(Result<Tensor> tensor);
  Value* ints(const Ints& values);                             // i64[n]
  Value* integer_scalar(int64_t value);                        // i64[]
  Value* filled(double value, DType dtype, const Dims& dims);  // converted as from_doubles does
  Value* scalar(double value, DType dtype) { return filled(value, dtype, {}); }
  Value* scalar_like(double value, const Value* like) { return scalar(value, like->dtype()); }

  Value* identity(Value* x) { return add(IdentityAttrs{}, {x}); }
  Value* unary(UnaryOp op, Value* x);
  Value* activation(ActivationOp op, Value* x, double alpha = 0, double beta = 0);
  Value* binary(ElementwiseOp op, Value* a, Value* b);
  Value* binary(ElementwiseOp op, Value* a, double b) { return binary(op, a, scalar_like(b, a)); }
  Value* mul(Value* a, Value* b) { return binary(ElementwiseOp::mul, a, b); }
  Value* plus(Value* a, Value* b) { return binary(ElementwiseOp::add, a, b); }
  Value* minus(Value* a, Value* b) { return binary(ElementwiseOp::sub, a, b); }
  Value* divide(Value* a, Value* b) { return binary(ElementwiseOp::div, a, b); }
  Value* select(Value* condition, Value* a, Value* b) { return add(SelectAttrs{}, {condition, a, b}); }
  Value* cast(Value* x, DType to);  // nothing when x has that type
  Value* reduce(ReduceOp op, Value* x, const Ints& axes, bool keepdims = true);
  Value* matmul(Value* a, Value* b, Transposed transposed = {});
  Value* softmax(Value* x, int64_t axis, bool log = false);
  Value* reshape(Value* x, Value* shape, bool allow_zero = false);
  Value* reshape(Value* x, const Ints& shape, bool allow_zero = false) { return reshape(x, ints(shape), allow_zero); }
  Value* unsqueeze(Value* x, const Ints& axes) { return add(UnsqueezeAttrs{}, {x, ints(axes)}); }
  Value* squeeze(Value* x, const Ints& axes) { return add(SqueezeAttrs{}, {x, ints(axes)}); }
  Value* transpose(Value* x, const Ints& perm);
  Value* expand(Value* x, Value* shape) { return add(ExpandAttrs{}, {x, shape}); }
  Value* slice(Value* x, int64_t axis, int64_t begin, int64_t end);
  Value* concat(std::vector<Value*> inputs, int64_t axis);
  Value* gather(Value* x, Value* indices, int64_t axis);
  Value* shape_of(Value* x, int64_t begin = 0, int64_t end = INT64_MAX);
  Value* fill(Value* shape, Tensor value);

 protected:
  static Value* placeholder();

  Graph& graph_;
  NodeName name_;
  std::vector<Node*> added_;
  bool failed_ = false;  // without an error where that has been reported

 private:
  Node* before_;
  std::string constant_suffix_;
  std::optional<Error> error_;
};

}  // namespace lathe::ir
