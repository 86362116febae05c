// SPDX-License-Identifier: Apache-2.0
#include "api/network/layers_pointwise.h"

#include "api/network/enums.h"
#include "api/network/network_add.h"

namespace lathe::api {

Result<std::vector<ir::Value*>> ActivationLayer::lower(LayerLowering& lowering) {
  LATHE_ASSIGN(const ActivationOp op, to_ours(type_));
  return std::vector{lowering.activation(op, in(0), alpha_, beta_)};
}

Result<std::vector<ir::Value*>> UnaryLayer::lower(LayerLowering& lowering) {
  LATHE_ASSIGN(const UnaryOp op, to_ours(operation_));
  return std::vector{lowering.unary(op, in(0))};
}

Result<std::vector<ir::Value*>> ElementWiseLayer::lower(LayerLowering& lowering) {
  LATHE_ASSIGN(const ElementwiseOp operation, to_ours(operation_));
  if (!broadcasts_ && in(0)->rank() != in(1)->rank())
    return fail(ErrorCode::shape_mismatch, "inputs have ranks {} and {}; equal ranks are needed", in(0)->rank(),
                in(1)->rank());
  return std::vector{lowering.binary(operation, in(0), in(1))};
}

Result<Dims> ScaleLayer::weights_dims(const ir::Value* x) const {
  const bool uniform = mode_ == nv::ScaleMode::kUNIFORM;
  if (channel_axis_ < 0 || (channel_axis_ >= x->rank() && !uniform))
    return fail(ErrorCode::invalid_argument, "channel axis {} is not in [0, {})", channel_axis_, x->rank());
  Dims dims;
  if (uniform) return dims;
  for (int i = channel_axis_; i < x->rank(); ++i) {
    const std::optional<int64_t> size = x->shape()[static_cast<size_t>(i)].as_constant();
    const bool needed = i == channel_axis_ || mode_ == nv::ScaleMode::kELEMENTWISE;
    if (needed && !size)
      return fail(ErrorCode::invalid_argument, "dimension {} is not known while building, but scaled by weights", i);
    dims.push_back(needed ? *size : 1);
  }
  return dims;
}

Result<std::vector<ir::Value*>> ScaleLayer::lower(LayerLowering& lowering) {
  ir::Value* x = in(0);
  LATHE_ASSIGN(const Dims dims, weights_dims(x));
  const std::pair<nv::Weights, ElementwiseOp> steps[] = {
      {scale_, ElementwiseOp::mul}, {shift_, ElementwiseOp::add}, {power_, ElementwiseOp::pow}};
  for (const auto& [weights, op] : steps) {
    if (weights.count > 0) x = lowering.binary(op, x, lowering.weights(weights, dims));
  }
  return std::vector{x};
}

Result<std::vector<ir::Value*>> ParametricReLULayer::lower(LayerLowering& lowering) {
  return std::vector{lowering.add(PreluAttrs(), {in(0), in(1)})};
}

Result<std::vector<ir::Value*>> SelectLayer::lower(LayerLowering& lowering) {
  return std::vector{lowering.select(in(0), in(1), in(2))};
}

Result<std::vector<ir::Value*>> IdentityLayer::lower(LayerLowering& lowering) {
  return std::vector{lowering.identity(in(0))};
}

Result<std::vector<ir::Value*>> CastLayer::lower(LayerLowering& lowering) {
  CastAttrs attributes;
  LATHE_ASSIGN(attributes.to, to_dtype(type_));
  return std::vector{lowering.add(attributes, {in(0)})};
}

nv::IActivationLayer* NetworkDefinition::addActivation(nv::ITensor& input, nv::ActivationType type) noexcept {
  return add<ActivationLayer>("INetworkDefinition::addActivation", {&input}, type);
}

nv::IUnaryLayer* NetworkDefinition::addUnary(nv::ITensor& input, nv::UnaryOperation operation) noexcept {
  return add<UnaryLayer>("INetworkDefinition::addUnary", {&input}, operation);
}

nv::IElementWiseLayer* NetworkDefinition::addElementWise(nv::ITensor& input1, nv::ITensor& input2,
                                                         nv::ElementWiseOperation op) noexcept {
  return add<ElementWiseLayer>("INetworkDefinition::addElementWise", {&input1, &input2}, op);
}

nv::IScaleLayer* NetworkDefinition::addScale(nv::ITensor& input, nv::ScaleMode mode, nv::Weights shift,
                                             nv::Weights scale, nv::Weights power) noexcept {
  return add<ScaleLayer>("INetworkDefinition::addScale", {&input}, mode, shift, scale, power, 1);
}

nv::IScaleLayer* NetworkDefinition::addScaleNd(nv::ITensor& input, nv::ScaleMode mode, nv::Weights shift,
                                               nv::Weights scale, nv::Weights power, int32_t channelAxis) noexcept {
  return add<ScaleLayer>("INetworkDefinition::addScaleNd", {&input}, mode, shift, scale, power, channelAxis);
}

nv::IParametricReLULayer* NetworkDefinition::addParametricReLU(nv::ITensor& input, nv::ITensor& slope) noexcept {
  return add<ParametricReLULayer>("INetworkDefinition::addParametricReLU", {&input, &slope});
}

nv::ISelectLayer* NetworkDefinition::addSelect(nv::ITensor& condition, nv::ITensor& thenInput,
                                               nv::ITensor& elseInput) noexcept {
  return add<SelectLayer>("INetworkDefinition::addSelect", {&condition, &thenInput, &elseInput});
}

nv::IIdentityLayer* NetworkDefinition::addIdentity(nv::ITensor& input) noexcept {
  return add<IdentityLayer>("INetworkDefinition::addIdentity", {&input});
}

nv::ICastLayer* NetworkDefinition::addCast(nv::ITensor& input, nv::DataType toType) noexcept {
  return add<CastLayer>("INetworkDefinition::addCast", {&input}, toType);
}

}  // namespace lathe::api
