// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "api/network/layer.h"
#include "compose/dynamic_quantize.h"

namespace lathe::api {

// A mixture of experts.
class MoELayer final : public LayerOf<nv::IMoELayer, nv::apiv::VMoELayer> {
 public:
  MoELayer(NetworkDefinition& network, std::vector<TensorView*> inputs)
      : LayerOf(network, nv::LayerType::kMOE, "MoE", std::move(inputs)) {}

  void setGatedWeights(nv::ITensor& fcGateWeights, nv::ITensor& fcUpWeights, nv::ITensor& fcDownWeights,
                       nv::MoEActType activationType) noexcept override;
  void setGatedBiases(nv::ITensor& fcGateBiases, nv::ITensor& fcUpBiases, nv::ITensor& fcDownBiases) noexcept override;
  void setActivationType(nv::MoEActType activationType) noexcept override { set(activation_, activationType); }
  nv::MoEActType getActivationType() const noexcept override { return activation_; }
  void setQuantizationStatic(nv::ITensor& fcDownActivationScale, nv::DataType dataType) noexcept override;
  void setQuantizationDynamicDblQ(nv::ITensor& fcDownActivationDblQScale, nv::DataType dataType,
                                  const nv::Dims& blockShape, nv::DataType dynQOutputScaleType) noexcept override;
  void setQuantizationToType(nv::DataType type) noexcept override { set(quantized_type_, type); }
  nv::DataType getQuantizationToType() const noexcept override { return quantized_type_; }
  void setQuantizationBlockShape(const nv::Dims& blockShape) noexcept override { set(block_, blockShape); }
  nv::Dims getQuantizationBlockShape() const noexcept override { return block_; }
  void setDynQOutputScaleType(nv::DataType type) noexcept override { set(scale_type_, type); }
  nv::DataType getDynQOutputScaleType() const noexcept override { return scale_type_; }
  void setSwigluParams(float limit, float alpha, float beta) noexcept override;
  void setSwigluParamLimit(float limit) noexcept override { set(limit_, limit); }
  float getSwigluParamLimit() const noexcept override { return limit_; }
  void setSwigluParamAlpha(float alpha) noexcept override { set(alpha_, alpha); }
  float getSwigluParamAlpha() const noexcept override { return alpha_; }
  void setSwigluParamBeta(float beta) noexcept override { set(beta_, beta); }
  float getSwigluParamBeta() const noexcept override { return beta_; }
  void setInput(int32_t index, nv::ITensor& tensor) noexcept override { Layer::setInput(index, tensor); }

 private:
  enum Input : size_t { kHidden, kChosen, kScores, kGate, kUp, kDown, kGateBias, kUpBias, kDownBias, kScale };
  enum class Quantization { none, given, found };  // who says the scales

  int32_t max_inputs() const override { return kScale + 1; }
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
  Result<> check_tokens() const;
  Result<> check_weights_given() const;
  ir::Value* combined(LayerLowering& lowering, ir::Value* gate, ir::Value* up) const;
  Result<ir::Value*> quantized(LayerLowering& lowering, ir::Value* inner, ir::Value* numbers) const;
  // All of these as inputs from `first` on, and nothing where one of them is another network's.
  Result<> take(size_t first, std::initializer_list<nv::ITensor*> tensors);

  nv::MoEActType activation_ = nv::MoEActType::kNONE;
  Quantization quantization_ = Quantization::none;
  nv::DataType quantized_type_ = nv::DataType::kFP8, scale_type_ = nv::DataType::kFLOAT;
  nv::Dims block_{-1, {}};
  float limit_ = std::numeric_limits<float>::infinity(), alpha_ = 1, beta_ = 0;
};

}  // namespace lathe::api
