// SPDX-License-Identifier: Apache-2.0
// Convolution, deconvolution, pooling.
#pragma once

#include "api/network/layer.h"

namespace lathe::api {

// Stride, padding and dilation, per spatial dimension. Unset ones have nbDims 0.
struct WindowSettings {
  nv::Dims window{};
  nv::Dims stride{};
  nv::Dims pre{};
  nv::Dims post{};
  nv::Dims dilation{};
  nv::PaddingMode mode = nv::PaddingMode::kEXPLICIT_ROUND_DOWN;
  bool may_have_one = false;  // spatial dimension, as in models

  // Fails unless all have as many dims as `window`, which is 2 or 3.
  Result<> check(int rank) const;
  Ints strides() const { return filled(stride, 1); }
  Ints pads_begin() const { return filled(pre, 0); }
  Ints pads_end() const { return filled(post, 0); }
  Ints dilations() const { return filled(dilation, 1); }
  nv::Dims padding() const;  // invalid_dims() when start and end differ
  // What getters show: the value for each spatial dimension.
  nv::Dims shown(const nv::Dims& dims, int64_t fallback) const;

 private:
  Ints filled(const nv::Dims& dims, int64_t fallback) const;
};

// The part of convolution and deconvolution that is the same.
template <class Interface, class Table>
class ConvolutionOf : public LayerOf<Interface, Table> {
 public:
  ConvolutionOf(NetworkDefinition& network, nv::LayerType type, const char* kind, std::vector<TensorView*> inputs,
                int64_t maps, const nv::Dims& kernel, nv::Weights weights, nv::Weights bias)
      : LayerOf<Interface, Table>(network, type, kind, std::move(inputs)), maps_(maps), kernel_(weights), bias_(bias) {
    window_.window = kernel;
  }

  void setNbOutputMaps(int64_t nbOutputMaps) noexcept override { this->set(maps_, nbOutputMaps); }
  int64_t getNbOutputMaps() const noexcept override { return maps_; }
  void setNbGroups(int64_t nbGroups) noexcept override { this->set(groups_, nbGroups); }
  int64_t getNbGroups() const noexcept override { return groups_; }
  // Empty ones stand for "input 1 (or 2) gives them", and leave it.
  void setKernelWeights(nv::Weights weights) noexcept override {
    this->set(kernel_, weights, weights.count > 0 ? 1 : this->kNoInput);
  }
  nv::Weights getKernelWeights() const noexcept override { return this->has(1) ? nv::Weights{} : kernel_; }
  void setBiasWeights(nv::Weights weights) noexcept override {
    this->set(bias_, weights, weights.count > 0 ? 2 : this->kNoInput);
  }
  nv::Weights getBiasWeights() const noexcept override { return this->has(2) ? nv::Weights{} : bias_; }
  void setPrePadding(const nv::Dims& padding) noexcept override { this->set(window_.pre, padding); }
  nv::Dims getPrePadding() const noexcept override { return window_.shown(window_.pre, 0); }
  void setPostPadding(const nv::Dims& padding) noexcept override { this->set(window_.post, padding); }
  nv::Dims getPostPadding() const noexcept override { return window_.shown(window_.post, 0); }
  void setPaddingMode(nv::PaddingMode paddingMode) noexcept override { this->set(window_.mode, paddingMode); }
  nv::PaddingMode getPaddingMode() const noexcept override { return window_.mode; }
  void setKernelSizeNd(const nv::Dims& kernelSize) noexcept override { this->set(window_.window, kernelSize); }
  nv::Dims getKernelSizeNd() const noexcept override { return window_.window; }
  void setStrideNd(const nv::Dims& stride) noexcept override { this->set(window_.stride, stride); }
  nv::Dims getStrideNd() const noexcept override { return window_.shown(window_.stride, 1); }
  void setPaddingNd(const nv::Dims& padding) noexcept override {
    this->change(padding, [&] { window_.pre = window_.post = padding; });
  }
  nv::Dims getPaddingNd() const noexcept override { return window_.padding(); }
  void setDilationNd(const nv::Dims& dilation) noexcept override { this->set(window_.dilation, dilation); }
  nv::Dims getDilationNd() const noexcept override { return window_.shown(window_.dilation, 1); }
  void set_window(const WindowSettings& window, int64_t groups) { window_ = window, groups_ = groups; }

 protected:
  int32_t max_inputs() const override { return 3; }  // x, kernel, bias
  // The kernel, with these first two dims, and the bias, from inputs or weights.
  Result<std::vector<ir::Value*>> operands(LayerLowering& lowering, int64_t first, int64_t second);

  int64_t maps_;
  int64_t groups_ = 1;
  nv::Weights kernel_, bias_;
  WindowSettings window_;
};

class ConvolutionLayer final : public ConvolutionOf<nv::IConvolutionLayer, nv::apiv::VConvolutionLayer> {
 public:
  ConvolutionLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, int64_t maps, const nv::Dims& kernel,
                   nv::Weights weights, nv::Weights bias)
      : ConvolutionOf(network, nv::LayerType::kCONVOLUTION, "Convolution", std::move(inputs), maps, kernel, weights,
                      bias) {}

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
};

class DeconvolutionLayer final : public ConvolutionOf<nv::IDeconvolutionLayer, nv::apiv::VDeconvolutionLayer> {
 public:
  DeconvolutionLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, int64_t maps, const nv::Dims& kernel,
                     nv::Weights weights, nv::Weights bias)
      : ConvolutionOf(network, nv::LayerType::kDECONVOLUTION, "Deconvolution", std::move(inputs), maps, kernel, weights,
                      bias) {}

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
};

class PoolingLayer final : public LayerOf<nv::IPoolingLayer, nv::apiv::VPoolingLayer> {
 public:
  PoolingLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::PoolingType type,
               const nv::Dims& window)
      : LayerOf(network, nv::LayerType::kPOOLING, "Pooling", std::move(inputs)), type_(type) {
    window_.window = window;
  }

  void set_window(const WindowSettings& window, bool exclusive) { window_ = window, exclusive_ = exclusive; }

  void setPoolingType(nv::PoolingType type) noexcept override { set(type_, type); }
  nv::PoolingType getPoolingType() const noexcept override { return type_; }
  void setBlendFactor(float blendFactor) noexcept override { set(blend_, blendFactor); }
  float getBlendFactor() const noexcept override { return blend_; }
  void setAverageCountExcludesPadding(bool exclusive) noexcept override { set(exclusive_, exclusive); }
  bool getAverageCountExcludesPadding() const noexcept override { return exclusive_; }
  void setPrePadding(const nv::Dims& padding) noexcept override { set(window_.pre, padding); }
  nv::Dims getPrePadding() const noexcept override { return window_.shown(window_.pre, 0); }
  void setPostPadding(const nv::Dims& padding) noexcept override { set(window_.post, padding); }
  nv::Dims getPostPadding() const noexcept override { return window_.shown(window_.post, 0); }
  void setPaddingMode(nv::PaddingMode paddingMode) noexcept override { set(window_.mode, paddingMode); }
  nv::PaddingMode getPaddingMode() const noexcept override { return window_.mode; }
  void setWindowSizeNd(const nv::Dims& windowSize) noexcept override { set(window_.window, windowSize); }
  nv::Dims getWindowSizeNd() const noexcept override { return window_.window; }
  void setStrideNd(const nv::Dims& stride) noexcept override { set(window_.stride, stride); }
  nv::Dims getStrideNd() const noexcept override { return window_.shown(window_.stride, 1); }
  void setPaddingNd(const nv::Dims& padding) noexcept override {
    change(padding, [&] { window_.pre = window_.post = padding; });
  }
  nv::Dims getPaddingNd() const noexcept override { return window_.padding(); }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
  Result<ir::Value*> pool(LayerLowering& lowering, PoolingOp op);

  nv::PoolingType type_;
  float blend_ = 0;
  bool exclusive_ = true;
  WindowSettings window_;
};

}  // namespace lathe::api
