// SPDX-License-Identifier: Apache-2.0
#include "api/network/layer_lowering.h"

#include <algorithm>

#include "ops/rules.h"

namespace lathe::api {
namespace {

Result<Tensor> scalar_tensor(DType dtype, double value) {
  LATHE_ASSIGN(Tensor tensor, Tensor::allocate(dtype, {}));
  from_doubles({&value, 1}, tensor);
  return tensor;
}

}  // namespace

Result<Tensor> tensor_of(const nv::Weights& weights, Dims dims) {
  LATHE_ASSIGN(const DType dtype, to_dtype(weights.type));
  const std::optional<int64_t> volume = checked_volume(dims);
  if (!volume || *volume != weights.count)
    return fail(ErrorCode::invalid_argument, "weights hold {} values, but {} are needed for dims {}", weights.count,
                volume.value_or(-1), lathe::to_string(to_shape(dims)));
  if (weights.count > 0 && !weights.values)
    return fail(ErrorCode::invalid_argument, "weights hold {} values, but their pointer is null", weights.count);
  if (weights.count == 0) return Tensor::allocate(dtype, std::move(dims));
  return Tensor::view(dtype, std::move(dims), weights.values, nullptr).with_clear_end();
}

Result<ir::Node*> LayerLowering::add_node(const Attributes& attributes, std::vector<ir::Value*> inputs,
                                          size_t num_outputs) {
  LATHE_ASSIGN(ir::Node * node, graph_.add(attributes, std::move(inputs), {layer_, {layer_}, {}}, num_outputs));
  nodes_.push_back(node);
  return node;
}

Result<ir::Value*> LayerLowering::add(const Attributes& attributes, std::vector<ir::Value*> inputs) {
  LATHE_ASSIGN(ir::Node * node, add_node(attributes, std::move(inputs)));
  return node->output();
}

Result<ir::Value*> LayerLowering::constant(Tensor value) {
  ConstantAttrs attributes;
  attributes.value = std::move(value);
  return add(attributes, {});
}

Result<ir::Value*> LayerLowering::ints(const Ints& values) {
  return constant(Tensor::from<int64_t>({static_cast<int64_t>(values.size())}, values));
}

Result<ir::Value*> LayerLowering::scalar(DType dtype, double value) {
  LATHE_ASSIGN(Tensor tensor, scalar_tensor(dtype, value));
  return constant(std::move(tensor));
}

Result<ir::Value*> LayerLowering::weights(const nv::Weights& weights, Dims dims) {
  LATHE_ASSIGN(Tensor tensor, tensor_of(weights, std::move(dims)));
  return constant(std::move(tensor));
}

Result<ir::Value*> LayerLowering::elementwise(ElementwiseOp op, ir::Value* a, ir::Value* b) {
  ElementwiseAttrs attributes;
  attributes.op = op;
  return add(attributes, {a, b});
}

Result<ir::Value*> LayerLowering::reshape(ir::Value* x, const Ints& dims, bool allow_zero) {
  LATHE_ASSIGN(ir::Value * shape, ints(dims));
  ReshapeAttrs attributes;
  attributes.allow_zero = allow_zero;
  return add(attributes, {x, shape});
}

Result<ir::Value*> LayerLowering::cast(ir::Value* x, DType dtype) {
  if (x->dtype() == dtype) return x;
  CastAttrs attributes;
  attributes.to = dtype;
  return add(attributes, {x});
}

bool LayerLowering::made(const ir::Value* value) const {
  return std::find(nodes_.begin(), nodes_.end(), value->producer()) != nodes_.end();
}

void LayerLowering::undo() {
  while (!nodes_.empty()) {
    graph_.erase(nodes_.back());
    nodes_.pop_back();
  }
}

}  // namespace lathe::api
