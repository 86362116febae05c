// SPDX-License-Identifier: Apache-2.0
// Adds nodes to a graph, for importers, rewrites and the layers of the public interface.
//
// Every function checks its operands by the shape rule of the op (Graph::add). The first error is kept: from then on no
// node is added and each function returns a placeholder, which the others take as operands. Whoever made the builder
// reads error() at the end. So callers write formulas without a check after each node.
#pragma once

#include <optional>

#include "base/source_location.h"
#include "ir/graph.h"

namespace lathe::ir {

// Which operands of a matrix product are transposed: their last two dimensions change places.
struct Transposed {
  bool a = false;
  bool b = false;
};

// Of a product by experts' matrices: they lie [experts, n, k]; ids are indices as those of gather are.
struct ExpertProduct {
  bool transposed = false;
  bool strict = false;
};

class GraphBuilder {
 public:
  // Adds nodes before `before` (null = at the end of the graph), called `name`; constants are called `name` and
  // `constant_suffix`.
  GraphBuilder(Graph& graph, NodeName name, Node* before = nullptr, std::string constant_suffix = {})
      : graph_(graph), name_(std::move(name)), before_(before), constant_suffix_(std::move(constant_suffix)) {}

  Graph& graph() { return graph_; }
  const std::string& name() const { return name_.name; }

  bool failed() const { return failed_; }
  const std::optional<Error>& error() const { return error_; }
  // Keeps the first error, and where it was found, and ignores later ones.
  void set_error(Error error, SourceLocation where = SourceLocation::current());
  const SourceLocation& where() const { return where_; }
  const std::vector<Node*>& added() const { return added_; }

  // A node of any op without bodies: all of its outputs, or its only one.
  std::vector<Value*> add_all(const Attributes& attributes, std::vector<Value*> inputs, size_t num_outputs);
  Value* add(const Attributes& attributes, std::vector<Value*> inputs);
  // A loop or branch with its bodies, which Graph::make_body() made; null after an error.
  Node* add_node(const Attributes& attributes, std::vector<std::unique_ptr<Graph>> bodies, std::vector<Value*> inputs,
                 size_t num_outputs);
  // Removes `node`, which must be the last that was added and have no readers.
  void remove_node(Node* node);

  // Constants. `constant` fails with the error of `tensor` where there is one; the others fail as Tensor::allocate
  // does.
  Value* constant(Result<Tensor> tensor);
  Value* known(Result<Known> value);                           // the same, and what it follows from
  Value* ints(const Ints& values);                             // i64[n]
  Value* integer_scalar(int64_t value);                        // i64[]
  Value* filled(double value, DType dtype, const Dims& dims);  // converted as from_doubles does
  Value* scalar(double value, DType dtype) { return filled(value, dtype, {}); }
  Value* scalar_like(double value, const Value* like) { return scalar(value, like->dtype()); }

  // Pointwise. Operands of one function have one element type, and broadcast as in NumPy.
  Value* identity(Value* x) { return add(IdentityAttrs{}, {x}); }
  Value* unary(UnaryOp op, Value* x);
  Value* activation(ActivationOp op, Value* x, double alpha = 0, double beta = 0);
  Value* binary(ElementwiseOp op, Value* a, Value* b);
  Value* binary(ElementwiseOp op, Value* a, double b) { return binary(op, a, scalar_like(b, a)); }
  Value* mul(Value* a, Value* b) { return binary(ElementwiseOp::mul, a, b); }
  Value* plus(Value* a, Value* b) { return binary(ElementwiseOp::add, a, b); }
  Value* minus(Value* a, Value* b) { return binary(ElementwiseOp::sub, a, b); }
  Value* divide(Value* a, Value* b) { return binary(ElementwiseOp::div, a, b); }
  // condition ? a : b, element by element; `condition` is boolean.
  Value* select(Value* condition, Value* a, Value* b) { return add(SelectAttrs{}, {condition, a, b}); }
  Value* cast(Value* x, DType to);  // x itself when it has that type

  // Reduces x along `axes` (negative ones count from the end), which stay with size 1 if `keepdims`. Without axes
  // nothing is reduced.
  Value* reduce(ReduceOp op, Value* x, const Ints& axes, bool keepdims = true);
  // [..., m, k] times [..., k, n] = [..., m, n] as in NumPy: `...` broadcasts, an operand of one dimension is a vector.
  Value* matmul(Value* a, Value* b, Transposed transposed = {});
  // [..., k] times weights[experts, k, n]: of each row the matrix of its expert, by its number. Rows and ids broadcast.
  Value* expert_matmul(Value* x, Value* weights, Value* ids, ExpertProduct product = {});
  // Softmax of x along `axis`, or its logarithm; the dims stay.
  Value* softmax(Value* x, int64_t axis, bool log = false);

  // Other dims for the same elements in row-major order. One size may be -1: what the others leave. A size of 0 copies
  // x's at its place, unless `allow_zero` makes it a dimension of no elements.
  Value* reshape(Value* x, Value* shape, bool allow_zero = false);
  Value* reshape(Value* x, const Ints& shape, bool allow_zero = false) { return reshape(x, ints(shape), allow_zero); }
  // Inserts dimensions of size 1, `axes` being those of the result; removes those of x, whose sizes must be 1.
  Value* unsqueeze(Value* x, const Ints& axes) { return add(UnsqueezeAttrs{}, {x, ints(axes)}); }
  Value* squeeze(Value* x, const Ints& axes) { return add(SqueezeAttrs{}, {x, ints(axes)}); }
  // Dimension i of the result is dimension perm[i] of x; an empty `perm` reverses the dimensions.
  Value* transpose(Value* x, const Ints& perm);
  // x repeated to the dims to which its own and `shape`, a list of integers, broadcast.
  Value* expand(Value* x, Value* shape) { return add(ExpandAttrs{}, {x, shape}); }
  // Elements [begin, end) of x along `axis`. Negative bounds count from the end; bounds beyond x are clamped.
  Value* slice(Value* x, int64_t axis, int64_t begin, int64_t end);
  // The inputs one after the other along `axis`; their types and other dims must agree.
  Value* concat(std::vector<Value*> inputs, int64_t axis);
  // x.dims[:axis] + indices.dims + x.dims[axis+1:]: the elements of x whose index along `axis` is one of `indices`.
  Value* gather(Value* x, Value* indices, int64_t axis);
  // Dims [begin, end) of x, as i64[n]. Negative bounds count from the end; bounds beyond the rank are clamped.
  Value* shape_of(Value* x, int64_t begin = 0, int64_t end = INT64_MAX);
  // A tensor with the dims that `shape`, a list of integers, holds; each element is the only one of `value`.
  Value* fill(Value* shape, Tensor value);

 protected:
  static Value* placeholder();
  void forget_error() { failed_ = false, error_.reset(); }

  Graph& graph_;
  NodeName name_;
  std::vector<Node*> added_;
  bool failed_ = false;  // without an error where that has been reported

 private:
  Node* before_;
  std::string constant_suffix_;
  std::optional<Error> error_;
  SourceLocation where_;
};

}  // namespace lathe::ir
