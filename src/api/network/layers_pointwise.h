// SPDX-License-Identifier: Apache-2.0
// Layers that compute element by element.
#pragma once

#include "api/network/layer.h"

namespace lathe::api {

class ActivationLayer final : public LayerOf<nv::IActivationLayer, nv::apiv::VActivationLayer> {
 public:
  ActivationLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::ActivationType type)
      : LayerOf(network, nv::LayerType::kACTIVATION, "Activation", std::move(inputs)), type_(type) {}

  void set_parameters(float alpha, float beta) { alpha_ = alpha, beta_ = beta; }

  void setActivationType(nv::ActivationType type) noexcept override { set(type_, type); }
  nv::ActivationType getActivationType() const noexcept override { return type_; }
  void setAlpha(float alpha) noexcept override { set(alpha_, alpha); }
  void setBeta(float beta) noexcept override { set(beta_, beta); }
  float getAlpha() const noexcept override { return alpha_; }
  float getBeta() const noexcept override { return beta_; }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  nv::ActivationType type_;
  float alpha_ = 0;
  float beta_ = 0;
};

class UnaryLayer final : public LayerOf<nv::IUnaryLayer, nv::apiv::VUnaryLayer> {
 public:
  UnaryLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::UnaryOperation operation)
      : LayerOf(network, nv::LayerType::kUNARY, "Unary", std::move(inputs)), operation_(operation) {}

  void setOperation(nv::UnaryOperation op) noexcept override { set(operation_, op); }
  nv::UnaryOperation getOperation() const noexcept override { return operation_; }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  nv::UnaryOperation operation_;
};

class ElementWiseLayer final : public LayerOf<nv::IElementWiseLayer, nv::apiv::VElementWiseLayer> {
 public:
  ElementWiseLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::ElementWiseOperation operation)
      : LayerOf(network, nv::LayerType::kELEMENTWISE, "ElementWise", std::move(inputs)), operation_(operation) {}

  // As models have it: inputs of fewer dimensions lie along the last ones.
  void set_broadcasts() { broadcasts_ = true; }

  void setOperation(nv::ElementWiseOperation op) noexcept override { set(operation_, op); }
  nv::ElementWiseOperation getOperation() const noexcept override { return operation_; }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  nv::ElementWiseOperation operation_;
  bool broadcasts_ = false;
};

class ScaleLayer final : public LayerOf<nv::IScaleLayer, nv::apiv::VScaleLayer> {
 public:
  ScaleLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::ScaleMode mode, nv::Weights shift,
             nv::Weights scale, nv::Weights power, int32_t channel_axis)
      : LayerOf(network, nv::LayerType::kSCALE, "Scale", std::move(inputs)),
        mode_(mode),
        shift_(shift),
        scale_(scale),
        power_(power),
        channel_axis_(channel_axis) {}

  void set_tensors(const Tensor& shift, const Tensor& scale) {
    tensors_ = {shift, scale};
    shift_ = {to_nv(shift.dtype()), shift.data(), shift.volume()};
    scale_ = {to_nv(scale.dtype()), scale.data(), scale.volume()};
  }

  void setMode(nv::ScaleMode mode) noexcept override { set(mode_, mode); }
  nv::ScaleMode getMode() const noexcept override { return mode_; }
  void setShift(nv::Weights shift) noexcept override { set(shift_, shift); }
  nv::Weights getShift() const noexcept override { return shift_; }
  void setScale(nv::Weights scale) noexcept override { set(scale_, scale); }
  nv::Weights getScale() const noexcept override { return scale_; }
  void setPower(nv::Weights power) noexcept override { set(power_, power); }
  nv::Weights getPower() const noexcept override { return power_; }
  int32_t getChannelAxis() const noexcept override { return channel_axis_; }
  void setChannelAxis(int32_t channelAxis) noexcept override { set(channel_axis_, channelAxis); }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
  Result<Dims> weights_dims(const ir::Value* x) const;

  nv::ScaleMode mode_;
  nv::Weights shift_, scale_, power_;
  std::vector<Tensor> tensors_;  // whose memory an imported layer's weights are
  int32_t channel_axis_;
};

class ParametricReLULayer final : public LayerOf<nv::IParametricReLULayer, nv::apiv::VParametricReLULayer> {
 public:
  ParametricReLULayer(NetworkDefinition& network, std::vector<TensorView*> inputs)
      : LayerOf(network, nv::LayerType::kPARAMETRIC_RELU, "Parametric ReLU", std::move(inputs)) {}

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
};

class SelectLayer final : public LayerOf<nv::ISelectLayer, nv::apiv::VSelectLayer> {
 public:
  SelectLayer(NetworkDefinition& network, std::vector<TensorView*> inputs)
      : LayerOf(network, nv::LayerType::kSELECT, "Select", std::move(inputs)) {}

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
};

class IdentityLayer final : public LayerOf<nv::IIdentityLayer, nv::apiv::VIdentityLayer> {
 public:
  IdentityLayer(NetworkDefinition& network, std::vector<TensorView*> inputs)
      : LayerOf(network, nv::LayerType::kIDENTITY, "Identity", std::move(inputs)) {}

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
};

class CastLayer final : public LayerOf<nv::ICastLayer, nv::apiv::VCastLayer> {
 public:
  CastLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::DataType type)
      : LayerOf(network, nv::LayerType::kCAST, "Cast", std::move(inputs)), type_(type) {}

  void setToType(nv::DataType toType) noexcept override { set(type_, toType); }
  nv::DataType getToType() const noexcept override { return type_; }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  nv::DataType type_;
};

}  // namespace lathe::api
