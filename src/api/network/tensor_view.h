// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "NvInfer.h"
#include "ir/graph.h"

namespace lathe::api {

class Layer;
class NetworkDefinition;

// An ITensor: a view over a value of the network's graph. The value behind it changes when its layer does, and is null
// until the layer is lowered for the first time: resolve() comes before value().
class TensorView final : public nvinfer1::ITensor, public nvinfer1::apiv::VTensor {
 public:
  TensorView(NetworkDefinition& network, ir::Value* value, Layer* producer, std::string name)
      : network_(network), value_(value), producer_(producer), name_(std::move(name)) {
    mImpl = this;
  }
  ~TensorView() noexcept override = default;

  NetworkDefinition& network() const { return network_; }
  ir::Value* value() const { return value_; }
  void set_value(ir::Value* value) { value_ = value; }
  Layer* producer() const { return producer_; }  // null for network inputs
  const std::string& name() const { return name_; }
  Result<> resolve() const;  // brings the value up to date with its layer's settings
  bool is_output() const { return output_; }
  void set_output(bool output) { output_ = output; }
  // Of the memory that applications bind; the network computes in the value's type.
  DType bound_type() const {
#if NV_TENSORRT_MAJOR < 11
    if (bound_type_ && (isNetworkInput() || output_)) return *bound_type_;
#endif
    return value_->dtype();
  }
  bool is_debug() const { return debug_; }
  void set_debug(bool debug) { debug_ = debug; }

  void setName(const char* name) noexcept override;
  const char* getName() const noexcept override { return name_.c_str(); }
  void setDimensions(const nvinfer1::Dims& dimensions) noexcept override;
  nvinfer1::Dims getDimensions() const noexcept override;
  nvinfer1::DataType getType() const noexcept override;
  bool isNetworkInput() const noexcept override { return !producer_; }
  bool isNetworkOutput() const noexcept override { return output_; }
  void setBroadcastAcrossBatch(bool broadcastAcrossBatch) noexcept override;
  bool getBroadcastAcrossBatch() const noexcept override { return false; }
  nvinfer1::TensorLocation getLocation() const noexcept override { return location_; }
  void setLocation(nvinfer1::TensorLocation location) noexcept override;
  void setAllowedFormats(nvinfer1::TensorFormats formats) noexcept override;
  nvinfer1::TensorFormats getAllowedFormats() const noexcept override { return formats_; }
  bool isShapeTensor() const noexcept override;
  bool isExecutionTensor() const noexcept override;
  void setDimensionName(int32_t index, const char* name) noexcept override;
  const char* getDimensionName(int32_t index) const noexcept override;

#if NV_TENSORRT_MAJOR < 11
  void setType(nvinfer1::DataType type) noexcept override;
  bool setDynamicRange(float min, float max) noexcept override;
  bool dynamicRangeIsSet() const noexcept override { return range_.has_value(); }
  void resetDynamicRange() noexcept override { range_.reset(); }
  float getDynamicRangeMin() const noexcept override { return range_ ? range_->first : kNoRange; }
  float getDynamicRangeMax() const noexcept override { return range_ ? range_->second : kNoRange; }
#endif

 private:
#if NV_TENSORRT_MAJOR < 11
  static constexpr float kNoRange = std::numeric_limits<float>::quiet_NaN();
  std::optional<std::pair<float, float>> range_;
  std::optional<DType> bound_type_;  // of an input or output of a weakly typed network; none: the value's
#endif
  Result<> apply_input_type();

  NetworkDefinition& network_;
  ir::Value* value_;
  Layer* producer_;
  std::string name_;
  std::string dimension_names_[nvinfer1::Dims::MAX_DIMS];
  nvinfer1::TensorFormats formats_ = (1u << nvinfer1::EnumMax<nvinfer1::TensorFormat>()) - 1;
  nvinfer1::TensorLocation location_ = nvinfer1::TensorLocation::kDEVICE;
  bool output_ = false;
  bool debug_ = false;
};

}  // namespace lathe::api
