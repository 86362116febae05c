// SPDX-License-Identifier: Apache-2.0
// Explicit quantisation and its inverse.
#pragma once

#include "api/network/layer.h"

namespace lathe::api {

// What both layers are told: the type that they give, and which elements share a scale.
class ScaledLayer {
 public:
  ScaledLayer(nv::DataType type, int32_t axis) : to_(type), axis_(axis) {}

 protected:
  // A scale or zero point laid beside x: of one value, one for each position of the axis, or one for each block.
  Result<ir::Value*> beside(LayerLowering& lowering, ir::Value* operand, const ir::Value* x, const char* what) const;
  Result<Ints> blocks(const ir::Value* x, const ir::Value* scale) const;
  Result<> set_block_shape(const nv::Dims& shape);
  nv::Dims block_shape() const { return block_; }
  void set_scaling(int32_t axis, const nv::Dims& blocks) { axis_ = axis, block_ = blocks; }

  nv::DataType to_;
  int32_t axis_;

 private:
  nv::Dims block_{-1, {}};  // nbDims < 0: not set
};

class QuantizeLayer final : public LayerOf<nv::IQuantizeLayer, nv::apiv::VQuantizeLayer>, private ScaledLayer {
 public:
  QuantizeLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::DataType type)
      : LayerOf(network, nv::LayerType::kQUANTIZE, "Quantize", std::move(inputs)), ScaledLayer(type, -1) {}

  using ScaledLayer::set_scaling;

  int32_t getAxis() const noexcept override { return axis_; }
  void setAxis(int32_t axis) noexcept override { set(axis_, axis); }
  nv::DataType getToType() const noexcept override { return to_; }
  void setToType(nv::DataType toType) noexcept override { set(to_, toType); }
  nv::Dims getBlockShape() const noexcept override { return block_shape(); }
  bool setBlockShape(const nv::Dims& blockShape) noexcept override;

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
  int32_t max_inputs() const override { return 3; }
};

class DequantizeLayer final : public LayerOf<nv::IDequantizeLayer, nv::apiv::VDequantizeLayer>, private ScaledLayer {
 public:
  DequantizeLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::DataType type)
      : LayerOf(network, nv::LayerType::kDEQUANTIZE, "Dequantize", std::move(inputs)), ScaledLayer(type, -1) {}

  using ScaledLayer::set_scaling;

  int32_t getAxis() const noexcept override { return axis_; }
  void setAxis(int32_t axis) noexcept override { set(axis_, axis); }
  nv::DataType getToType() const noexcept override { return to_; }
  void setToType(nv::DataType toType) noexcept override { set(to_, toType); }
  nv::Dims getBlockShape() const noexcept override { return block_shape(); }
  bool setBlockShape(const nv::Dims& blockShape) noexcept override;

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
  int32_t max_inputs() const override { return 3; }
};

}  // namespace lathe::api
