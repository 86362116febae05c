// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/network/layer.h"

namespace lathe::api {

// Quantisation by scales that it finds while running. Input 1: what the scales are multiples of.
class DynamicQuantizeLayer final : public LayerOf<nv::IDynamicQuantizeLayer, nv::apiv::VDynamicQuantizeLayer> {
 public:
  DynamicQuantizeLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::Dims block, nv::DataType to,
                       nv::DataType scale)
      : LayerOf(network, nv::LayerType::kDYNAMIC_QUANTIZE, "DynamicQuantize", std::move(inputs)),
        block_(block),
        to_(to),
        scale_(scale) {}
  DynamicQuantizeLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, int32_t axis, int32_t size,
                       nv::DataType to, nv::DataType scale)
      : DynamicQuantizeLayer(network, std::move(inputs), nv::Dims{-1, {}}, to, scale) {
    axis_ = axis, size_ = size;
  }

  int32_t getAxis() const noexcept override { return axis_; }
  void setAxis(int32_t axis) noexcept override;
  int32_t getBlockSize() const noexcept override { return size_; }
  void setBlockSize(int32_t size) noexcept override;
  nv::DataType getScaleType() const noexcept override { return scale_; }
  void setScaleType(nv::DataType scaleType) noexcept override { set(scale_, scaleType); }
  nv::DataType getToType() const noexcept override { return to_; }
  void setToType(nv::DataType toType) noexcept override { set(to_, toType); }
  nv::Dims getBlockShape() const noexcept override { return block_; }
  void setBlockShape(const nv::Dims& blockShape) noexcept override {
    change(blockShape, [&] { block_ = blockShape, axis_ = size_ = -1; });
  }

 private:
  int32_t max_inputs() const override { return 2; }
  size_t num_outputs() const override { return 2; }
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
  Result<nv::Dims> shape() const;
  // The last call says whether blocks have a shape or lie along an axis.
  void set_along(int32_t& setting, int32_t value, const char* where = __builtin_FUNCTION()) noexcept {
    change(
        value,
        [&] {
          setting = value, block_ = {-1, {}};
        },
        kNoInput, where);
  }

  nv::Dims block_;  // nbDims < 0: they lie along the axis
  int32_t axis_ = -1, size_ = -1;
  nv::DataType to_, scale_;
};

}  // namespace lathe::api
