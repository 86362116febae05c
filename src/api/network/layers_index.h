// SPDX-License-Identifier: Apache-2.0
// Layers that pick, scatter or resample elements.
#pragma once

#include "api/network/layer.h"

namespace lathe::api {

class GatherLayer final : public LayerOf<nv::IGatherLayer, nv::apiv::VGatherLayer> {
 public:
  GatherLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, int32_t axis, nv::GatherMode mode)
      : LayerOf(network, nv::LayerType::kGATHER, "Gather", std::move(inputs)), axis_(axis), mode_(mode) {}

  void set_batch_dims(int64_t count) { batch_dims_ = static_cast<int32_t>(count); }

  void setGatherAxis(int32_t axis) noexcept override { set(axis_, axis); }
  int32_t getGatherAxis() const noexcept override { return axis_; }
  void setNbElementWiseDims(int32_t elementWiseDims) noexcept override { set(batch_dims_, elementWiseDims); }
  int32_t getNbElementWiseDims() const noexcept override { return batch_dims_; }
  void setMode(nv::GatherMode mode) noexcept override { set(mode_, mode); }
  nv::GatherMode getMode() const noexcept override { return mode_; }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
  Result<ir::Value*> gather_batches(LayerLowering& lowering) const;

  int32_t axis_;
  nv::GatherMode mode_;
  int32_t batch_dims_ = 0;
};

class ScatterLayer final : public LayerOf<nv::IScatterLayer, nv::apiv::VScatterLayer> {
 public:
  ScatterLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::ScatterMode mode, int32_t axis = 0)
      : LayerOf(network, nv::LayerType::kSCATTER, "Scatter", std::move(inputs)), mode_(mode), axis_(axis) {}

  void setMode(nv::ScatterMode mode) noexcept override { set(mode_, mode); }
  nv::ScatterMode getMode() const noexcept override { return mode_; }
  void setAxis(int32_t axis) noexcept override { set(axis_, axis); }
  int32_t getAxis() const noexcept override { return axis_; }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  nv::ScatterMode mode_;
  int32_t axis_;
};

class OneHotLayer final : public LayerOf<nv::IOneHotLayer, nv::apiv::VOneHotLayer> {
 public:
  OneHotLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, int32_t axis)
      : LayerOf(network, nv::LayerType::kONE_HOT, "OneHot", std::move(inputs)), axis_(axis) {}

  int32_t getAxis() const noexcept override { return axis_; }
  void setAxis(int32_t axis) noexcept override { set(axis_, axis); }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  int32_t axis_;
};

class NonZeroLayer final : public LayerOf<nv::INonZeroLayer, nv::apiv::VNonZeroLayer> {
 public:
  NonZeroLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::DataType indices)
      : LayerOf(network, nv::LayerType::kNON_ZERO, "NonZero", std::move(inputs)), indices_(indices) {}

  bool setIndicesType(nv::DataType type) noexcept override;
  nv::DataType getIndicesType() const noexcept override { return indices_; }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  nv::DataType indices_;
};

class ResizeLayer final : public LayerOf<nv::IResizeLayer, nv::apiv::VResizeLayer> {
 public:
  ResizeLayer(NetworkDefinition& network, std::vector<TensorView*> inputs)
      : LayerOf(network, nv::LayerType::kRESIZE, "Resize", std::move(inputs)) {}

  // For imported layers. False where the layer has no such way.
  bool set_sampling(const ResizeAttrs& attributes);
  void set_dims(const nv::Dims& dims) { dims_ = dims; }
  void set_scales(std::vector<float> scales) { scales_ = std::move(scales); }

  // Dimensions or scales: the last call wins. Input 1 stays once it is there, and both are refused.
  void setOutputDimensions(const nv::Dims& dimensions) noexcept override;
  nv::Dims getOutputDimensions() const noexcept override { return has(1) ? invalid_dims() : dims_; }
  void setScales(const float* scales, int32_t nbScales) noexcept override;
  int32_t getScales(int32_t size, float* scales) const noexcept override;
  void setResizeMode(nv::InterpolationMode mode) noexcept override { set(mode_, mode); }
  nv::InterpolationMode getResizeMode() const noexcept override { return mode_; }
  void setCoordinateTransformation(nv::ResizeCoordinateTransformation transform) noexcept override {
    set(coordinates_, transform);
  }
  nv::ResizeCoordinateTransformation getCoordinateTransformation() const noexcept override { return coordinates_; }
  void setSelectorForSinglePixel(nv::ResizeSelector selector) noexcept override { set(selector_, selector); }
  nv::ResizeSelector getSelectorForSinglePixel() const noexcept override { return selector_; }
  void setNearestRounding(nv::ResizeRoundMode value) noexcept override { set(rounding_, value); }
  nv::ResizeRoundMode getNearestRounding() const noexcept override { return rounding_; }
  void setCubicCoeff(float A) noexcept override { set(cubic_, A); }
  float getCubicCoeff() const noexcept override { return cubic_; }
  void setExcludeOutside(bool excludeFlag) noexcept override { set(exclude_outside_, excludeFlag); }
  bool getExcludeOutside() const noexcept override { return exclude_outside_; }

 private:
  int32_t max_inputs() const override { return 2; }
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
  Result<> check_static() const;

  nv::Dims dims_ = invalid_dims();
  std::vector<float> scales_;
  nv::InterpolationMode mode_ = nv::InterpolationMode::kNEAREST;
  nv::ResizeCoordinateTransformation coordinates_ = nv::ResizeCoordinateTransformation::kASYMMETRIC;
  nv::ResizeSelector selector_ = nv::ResizeSelector::kFORMULA;
  nv::ResizeRoundMode rounding_ = nv::ResizeRoundMode::kFLOOR;
  float cubic_ = -0.75f;
  bool exclude_outside_ = false;
};

}  // namespace lathe::api
