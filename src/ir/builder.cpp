// SPDX-License-Identifier: Apache-2.0
#include "ir/builder.h"

#include "ops/rules.h"

namespace lathe::ir {

Value* GraphBuilder::placeholder() {
  static Value value;
  return &value;
}

void GraphBuilder::set_error(Error error, SourceLocation where) {
  if (!failed_) {
    error_ = std::move(error);
    where_ = where;
  }
  failed_ = true;
}

std::vector<Value*> GraphBuilder::add_all(const Attributes& attributes, std::vector<Value*> inputs,
                                          size_t num_outputs) {
  std::vector<Value*> outputs(num_outputs, placeholder());
  if (failed_) return outputs;
  NodeName name = name_;
  if (attributes.kind() == OpKind::constant) name.name += constant_suffix_;
  Result<Node*> node = graph_.add(attributes, std::move(inputs), std::move(name), num_outputs, before_);
  if (!node) {
    set_error(std::move(node).error());
    return outputs;
  }
  added_.push_back(*node);
  for (size_t i = 0; i < num_outputs; ++i) outputs[i] = (*node)->output(i);
  return outputs;
}

Node* GraphBuilder::add_node(const Attributes& attributes, std::vector<std::unique_ptr<Graph>> bodies,
                             std::vector<Value*> inputs, size_t num_outputs) {
  if (failed_) return nullptr;
  Result<Node*> node = graph_.add(attributes, std::move(bodies), std::move(inputs), name_, num_outputs, before_);
  if (!node) {
    set_error(std::move(node).error());
    return nullptr;
  }
  added_.push_back(*node);
  return *node;
}

void GraphBuilder::remove_node(Node* node) {
  added_.pop_back();
  graph_.erase(node);
}

Value* GraphBuilder::add(const Attributes& attributes, std::vector<Value*> inputs) {
  return add_all(attributes, std::move(inputs), 1)[0];
}

Value* GraphBuilder::constant(Result<Tensor> tensor) {
  if (!tensor) {
    set_error(std::move(tensor).error());
    return placeholder();
  }
  ConstantAttrs attributes;
  attributes.value = *std::move(tensor);
  return add(attributes, {});
}

Value* GraphBuilder::known(Result<Known> value) {
  if (!value) {
    set_error(std::move(value).error());
    return placeholder();
  }
  Value* const made = constant(std::move(value->content));
  if (!failed_) made->producer()->derivation = std::move(value->derivation);
  return made;
}

Value* GraphBuilder::ints(const Ints& values) {
  return constant(Tensor::from<int64_t>({static_cast<int64_t>(values.size())}, values));
}

Value* GraphBuilder::integer_scalar(int64_t value) { return constant(Tensor::of<int64_t>({}, {value})); }

Value* GraphBuilder::filled(double value, DType dtype, const Dims& dims) {
  Result<Tensor> tensor = Tensor::allocate(dtype, dims);
  if (tensor) from_doubles(std::vector<double>(static_cast<size_t>(tensor->volume()), value), *tensor);
  return constant(std::move(tensor));
}

Value* GraphBuilder::unary(UnaryOp op, Value* x) {
  UnaryAttrs attributes;
  attributes.op = op;
  return add(attributes, {x});
}

Value* GraphBuilder::activation(ActivationOp op, Value* x, double alpha, double beta) {
  ActivationAttrs attributes;
  attributes.op = op;
  attributes.alpha = alpha;
  attributes.beta = beta;
  return add(attributes, {x});
}

Value* GraphBuilder::binary(ElementwiseOp op, Value* a, Value* b) {
  ElementwiseAttrs attributes;
  attributes.op = op;
  return add(attributes, {a, b});
}

Value* GraphBuilder::cast(Value* x, DType to) {
  if (x->dtype() == to || failed_) return x;
  CastAttrs attributes;
  attributes.to = to;
  return add(attributes, {x});
}

Value* GraphBuilder::reduce(ReduceOp op, Value* x, const Ints& axes, bool keepdims) {
  ReduceAttrs attributes;
  attributes.op = op;
  attributes.axes = axes;
  attributes.keepdims = keepdims;
  attributes.noop_with_empty_axes = axes.empty();
  return add(attributes, {x});
}

Value* GraphBuilder::matmul(Value* a, Value* b, Transposed transposed) {
  MatmulAttrs attributes;
  attributes.transpose_a = transposed.a;
  attributes.transpose_b = transposed.b;
  return add(attributes, {a, b});
}

Value* GraphBuilder::expert_matmul(Value* x, Value* weights, Value* ids, ExpertProduct product) {
  ExpertMatmulAttrs attributes;
  attributes.transpose_w = product.transposed;
  attributes.strict = product.strict;
  return add(attributes, {x, weights, ids});
}

Value* GraphBuilder::softmax(Value* x, int64_t axis, bool log) {
  SoftmaxAttrs attributes;
  attributes.axis = axis;
  attributes.log = log;
  return add(attributes, {x});
}

Value* GraphBuilder::reshape(Value* x, Value* shape, bool allow_zero) {
  ReshapeAttrs attributes;
  attributes.allow_zero = allow_zero;
  return add(attributes, {x, shape});
}

Value* GraphBuilder::transpose(Value* x, const Ints& perm) {
  TransposeAttrs attributes;
  attributes.perm = perm;
  return add(attributes, {x});
}

Value* GraphBuilder::slice(Value* x, int64_t axis, int64_t begin, int64_t end) {
  return add(SliceAttrs{}, {x, ints({begin}), ints({end}), ints({axis})});
}

Value* GraphBuilder::concat(std::vector<Value*> inputs, int64_t axis) {
  ConcatAttrs attributes;
  attributes.axis = axis;
  return add(attributes, std::move(inputs));
}

Value* GraphBuilder::gather(Value* x, Value* indices, int64_t axis) {
  GatherAttrs attributes;
  attributes.axis = axis;
  return add(attributes, {x, indices});
}

Value* GraphBuilder::shape_of(Value* x, int64_t begin, int64_t end) {
  ShapeAttrs attributes;
  attributes.start = begin;
  attributes.end = end;
  return add(attributes, {x});
}

Value* GraphBuilder::fill(Value* shape, Tensor value) {
  FillAttrs attributes;
  attributes.value = std::move(value);
  return add(attributes, {shape});
}

}  // namespace lathe::ir
