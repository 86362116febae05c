// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "api/network/enums.h"
#include "api/network/imported_kinds.h"
#include "api/network/layers_index.h"
#include "api/network/layers_move.h"
#include "api/network/layers_pointwise.h"
#include "api/network/layers_quantize.h"
#include "api/network/layers_rows.h"
#include "ops/rules.h"

namespace lathe::api {
namespace {

// What a shuffle reshapes to: 0 copies a dimension, and one may be found out.
std::optional<nv::Dims> target_of(const ir::Value& x, const Shape& shape) {
  if (shape.size() > nv::Dims::MAX_DIMS) return std::nullopt;
  Ints target;
  int open = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    const std::optional<int64_t> known = shape[d].as_constant();
    const bool copied = d < x.shape().size() && x.shape()[d] == shape[d];
    if (known == 0 || (!known && !copied && ++open > 1)) return std::nullopt;
    target.push_back(known ? *known : copied ? 0 : -1);
  }
  return dims_of(target);
}

// One number for each channel.
Result<Tensor> per_channel(const Tensor& like, const std::vector<double>& values) {
  LATHE_ASSIGN(Tensor made, Tensor::allocate(like.dtype(), like.dims()));
  from_doubles(values, made);
  return made;
}

// The scale and zero point as they were before an importer laid them beside x.
const ir::Value* vector_of(const ir::Value* value) {
  const ir::Node* unsqueeze = value ? value->producer() : nullptr;
  const bool is_laid = unsqueeze && unsqueeze->is(OpKind::unsqueeze) && unsqueeze->input(0)->rank() == 1;
  return is_laid ? unsqueeze->input(0) : value;
}

// The one axis along which an operand of x's rank varies; nullopt where it varies along several.
std::optional<int32_t> axis_of(const ir::Value& operand) {
  std::optional<int32_t> axis;
  for (int32_t d = 0; d < operand.rank(); ++d) {
    if (operand.shape()[static_cast<size_t>(d)] == Expr(1)) continue;
    if (axis) return std::nullopt;
    axis = d;
  }
  return axis;
}

// Fails to say it where scales are neither one, nor along one axis, nor by blocks.
template <class L, class Attrs>
std::unique_ptr<Layer> quantization(NetworkDefinition& network, ir::Node* node, const Attrs& attributes) {
  const ir::Value *x = node->input(0), *scale = node->input(1), *zero_point = node->input(2);
  auto layer = std::make_unique<L>(network, std::vector<TensorView*>(), to_nv(attributes.to));
  std::vector<const ir::Value*> inputs = {x, scale};
  if (zero_point) inputs.push_back(zero_point);
  if (!attributes.blocks.empty()) {
    if (scale->rank() != x->rank() || x->rank() > nv::Dims::MAX_DIMS) return nullptr;
    Ints blocks = attributes.blocks;
    std::replace(blocks.begin(), blocks.end(), int64_t{0}, int64_t{-1});
    layer->set_scaling(-1, dims_of(blocks));
  } else if (scale->rank() != 0) {
    const std::optional<int32_t> axis = axis_of(*scale);
    const ir::Value *scales = vector_of(scale), *zeros = vector_of(zero_point);
    if (scale->rank() != x->rank() || !axis || scales->rank() != 1 || (zeros && zeros->rank() != 1)) return nullptr;
    layer->set_scaling(*axis, invalid_dims());
    inputs = {x, scales};
    if (zeros) inputs.push_back(zeros);
  } else if (zero_point && zero_point->rank() != 0) {
    return nullptr;
  }
  layer->adopt(node, inputs);
  return layer;
}

}  // namespace

std::optional<Ints> known_ints(const ir::Value* value) {
  if (!value || !value->constant()) return std::nullopt;
  Ints values;
  for (int64_t i = 0; i < value->constant()->volume(); ++i) values.push_back(value->constant()->at(i));
  return values;
}

nv::Dims dims_of(const Ints& values) { return to_nv(Dims(values)); }

uint32_t mask_of(const Ints& axes, int rank) {
  uint32_t mask = 0;
  for (int64_t axis : axes) mask |= 1u << (axis < 0 ? axis + rank : axis);
  return mask;
}

std::unique_ptr<Layer> make_reshape(NetworkDefinition& network, ir::Node* node) {
  const ir::Value* x = node->input(0);
  std::optional<nv::Dims> target;
  bool copies = true;
  if (node->is(OpKind::reshape)) {
    const std::optional<Ints> given = known_ints(node->input(1));
    if (given && given->size() <= nv::Dims::MAX_DIMS) target = dims_of(*given);
    copies = !node->attrs<ReshapeAttrs>().allow_zero;
  } else if (node->is(OpKind::flatten) || (node->is(OpKind::squeeze) && !node->input(1))) {
    target = target_of(*x, node->output()->shape());
  }
  if (!target) return nullptr;
  auto layer = std::make_unique<ShuffleLayer>(network, std::vector<TensorView*>());
  layer->set_reshape(*target, copies);
  layer->adopt(node, {x});
  return layer;
}

// y = x * scale / sqrt(variance + epsilon) + bias - mean * scale / sqrt(variance + epsilon)
std::unique_ptr<Layer> make_scale(NetworkDefinition& network, ir::Node* node) {
  if (!node->is(OpKind::batch_normalization)) return nullptr;
  const auto& attributes = node->attrs<BatchNormalizationAttrs>();
  const ir::Value* x = node->input(0);
  if (attributes.training || node->num_outputs() != 1 || x->rank() < 2) return nullptr;
  const Tensor* constants[4];  // scale, bias, mean, variance
  for (size_t i = 0; i < 4; ++i) {
    constants[i] = node->input(i + 1)->constant();
    if (!constants[i] || constants[i]->dtype() != x->dtype()) return nullptr;
  }
  std::vector<double> scales, shifts;
  for (int64_t c = 0; c < constants[0]->volume(); ++c) {
    const double factor = constants[0]->at_double(c) / std::sqrt(constants[3]->at_double(c) + attributes.epsilon);
    scales.push_back(factor);
    shifts.push_back(constants[1]->at_double(c) - constants[2]->at_double(c) * factor);
  }
  const Result<Tensor> scale = per_channel(*constants[0], scales), shift = per_channel(*constants[0], shifts);
  if (!scale || !shift) return nullptr;
  auto layer = std::make_unique<ScaleLayer>(network, std::vector<TensorView*>(), nv::ScaleMode::kCHANNEL, nv::Weights{},
                                            nv::Weights{}, nv::Weights{to_nv(x->dtype()), nullptr, 0}, 1);
  layer->set_tensors(*shift, *scale);
  layer->adopt(node, {x});
  return layer;
}

std::unique_ptr<Layer> make_resize(NetworkDefinition& network, ir::Node* node) {
  if (!node->is(OpKind::resize)) return nullptr;
  const auto& attributes = node->attrs<ResizeAttrs>();
  const ir::Value *x = node->input(0), *scales = node->input(2), *sizes = node->input(3);
  const bool plain = !attributes.antialias && attributes.axes.empty() && attributes.aspect == AspectPolicy::stretch;
  if (!plain || x->rank() > nv::Dims::MAX_DIMS) return nullptr;
  auto layer = std::make_unique<ResizeLayer>(network, std::vector<TensorView*>());
  if (!layer->set_sampling(attributes)) return nullptr;
  std::vector<const ir::Value*> inputs = {x};
  if (const std::optional<Ints> known = known_ints(sizes)) {
    layer->set_dims(dims_of(*known));
  } else if (sizes) {
    inputs.push_back(sizes);
  } else if (scales && scales->constant()) {
    std::vector<float> factors;
    for (int64_t i = 0; i < scales->constant()->volume(); ++i)
      factors.push_back(static_cast<float>(scales->constant()->at_double(i)));
    layer->set_scales(std::move(factors));
  } else {
    return nullptr;
  }
  layer->adopt(node, inputs);
  return layer;
}

std::unique_ptr<Layer> make_quantization(NetworkDefinition& network, ir::Node* node) {
  if (node->is(OpKind::dequantize)) return quantization<DequantizeLayer>(network, node, node->attrs<DequantizeAttrs>());
  if (!node->is(OpKind::quantize) || !node->attrs<QuantizeAttrs>().saturate) return nullptr;
  return quantization<QuantizeLayer>(network, node, node->attrs<QuantizeAttrs>());
}

std::unique_ptr<Layer> make_reduction(NetworkDefinition& network, ir::Node* node) {
  if (!node->is(OpKind::reduce)) return nullptr;
  const auto& attributes = node->attrs<ReduceAttrs>();
  const ir::Value* x = node->input(0);
  const auto operation = to_nv(attributes.op);
  std::optional<Ints> axes = node->input(1) ? known_ints(node->input(1)) : attributes.axes;
  if (!operation || !axes || x->rank() == 0 || (axes->empty() && attributes.noop_with_empty_axes)) return nullptr;
  const int64_t all = axes->empty() ? x->rank() : 0;
  for (int64_t d = 0; d < all; ++d) axes->push_back(d);
  auto layer = std::make_unique<ReduceLayer>(network, std::vector<TensorView*>(), *operation, mask_of(*axes, x->rank()),
                                             attributes.keepdims);
  layer->adopt(node, {x});
  return layer;
}

// The layer has the values before the depth.
std::unique_ptr<Layer> make_one_hot(NetworkDefinition& network, ir::Node* node) {
  if (!node->is(OpKind::one_hot)) return nullptr;
  auto layer = std::make_unique<OneHotLayer>(network, std::vector<TensorView*>(),
                                             static_cast<int32_t>(node->attrs<OneHotAttrs>().axis));
  layer->adopt(node, {node->input(0), node->input(2), node->input(1)});
  return layer;
}

}  // namespace lathe::api
