// SPDX-License-Identifier: Apache-2.0
#include "api/network/layers_window.h"

#include <algorithm>

#include "api/network/enums.h"
#include "api/network/network_add.h"

namespace lathe::api {
namespace {

Ints to_ints(const nv::Dims& dims) { return Ints(dims.d, dims.d + std::max(dims.nbDims, 0)); }

// Channels of x, which convolutions need to know while building.
Result<int64_t> channels_of(const ir::Value* x, const WindowSettings& window) {
  if (x->rank() < (window.may_have_one ? 3 : 4) || x->rank() > 5)
    return fail(ErrorCode::shape_mismatch, "input has rank {}; 4 or 5 is needed", x->rank());
  const std::optional<int64_t> channels = x->shape()[1].as_constant();
  if (!channels) return fail(ErrorCode::shape_mismatch, "the number of input channels must be known while building");
  return *channels;
}

// A kernel that is an input has the dims that output maps, groups and window ask for, where they are known.
Result<> check_kernel(const Shape& kernel, const Dims& wanted) {
  bool same = kernel.size() == wanted.size();
  for (size_t i = 0; same && i < wanted.size(); ++i) same = kernel[i].as_constant().value_or(wanted[i]) == wanted[i];
  if (same) return {};
  return fail(ErrorCode::shape_mismatch,
              "the kernel of input 1 has dims {}, but output maps, groups and kernel size ask for {}; set those of the "
              "kernel, or give another by setInput() or setKernelWeights()",
              lathe::to_string(kernel), lathe::to_string(to_shape(wanted)));
}

}  // namespace

Result<> WindowSettings::check(int rank) const {
  if (window.nbDims != rank - 2)
    return fail(ErrorCode::invalid_argument, "window has {} dims, but the input has {} spatial ones", window.nbDims,
                rank - 2);
  for (const nv::Dims* dims : {&stride, &pre, &post, &dilation})
    if (dims->nbDims != 0 && dims->nbDims != window.nbDims)
      return fail(ErrorCode::invalid_argument, "stride, padding or dilation has {} dims, the window {}", dims->nbDims,
                  window.nbDims);
  for (const nv::Dims* dims : {&pre, &post})
    if (std::any_of(dims->d, dims->d + dims->nbDims, [](int64_t amount) { return amount < 0; }))
      return fail(ErrorCode::invalid_argument, "padding is negative; a slice layer crops");
  return {};
}

Ints WindowSettings::filled(const nv::Dims& dims, int64_t fallback) const {
  return dims.nbDims == 0 ? Ints(static_cast<size_t>(window.nbDims), fallback) : to_ints(dims);
}

nv::Dims WindowSettings::shown(const nv::Dims& dims, int64_t fallback) const {
  nv::Dims result = dims;
  if (dims.nbDims != 0) return result;
  result.nbDims = window.nbDims;
  for (int32_t i = 0; i < window.nbDims; ++i) result.d[i] = fallback;
  return result;
}

nv::Dims WindowSettings::padding() const {
  const nv::Dims begin = shown(pre, 0), end = shown(post, 0);
  for (int32_t i = 0; i < begin.nbDims; ++i)
    if (begin.d[i] != end.d[i]) return invalid_dims();
  return begin;
}

template <class Interface, class Table>
Result<std::vector<ir::Value*>> ConvolutionOf<Interface, Table>::operands(LayerLowering& lowering, int64_t first,
                                                                          int64_t second) {
  Dims dims = to_ints(window_.window);
  dims.insert(dims.begin(), {first, second});
  ir::Value* kernel = this->in(1);
  if (kernel) {
    LATHE_TRY(check_kernel(kernel->shape(), dims));
  } else if (kernel_.count == 0) {
    return fail(ErrorCode::graph_invalid, "neither kernel weights nor an input 1 are given");
  } else {
    kernel = lowering.weights(kernel_, std::move(dims));
  }
  ir::Value* bias = this->in(2);
  if (!bias && bias_.count > 0) bias = lowering.weights(bias_, {maps_});
  return std::vector{this->in(0), kernel, bias};
}

Result<std::vector<ir::Value*>> ConvolutionLayer::lower(LayerLowering& lowering) {
  LATHE_ASSIGN(const int64_t channels, channels_of(in(0), window_));
  LATHE_TRY(window_.check(in(0)->rank()));
  if (groups_ < 1 || maps_ < 1 || channels % groups_ != 0 || maps_ % groups_ != 0)
    return fail(ErrorCode::invalid_argument, "{} groups do not divide {} input channels and {} output maps", groups_,
                channels, maps_);
  LATHE_ASSIGN(auto inputs, operands(lowering, maps_, channels / groups_));
  ConvolutionAttrs attributes;
  attributes.stride = window_.strides();
  attributes.pads_begin = window_.pads_begin();
  attributes.pads_end = window_.pads_end();
  attributes.dilation = window_.dilations();
  attributes.groups = groups_;
  LATHE_ASSIGN(attributes.padding_mode, to_ours(window_.mode));
  return std::vector{lowering.add(attributes, std::move(inputs))};
}

Result<std::vector<ir::Value*>> DeconvolutionLayer::lower(LayerLowering& lowering) {
  LATHE_ASSIGN(const int64_t channels, channels_of(in(0), window_));
  LATHE_TRY(window_.check(in(0)->rank()));
  if (groups_ < 1 || maps_ < 1 || channels % groups_ != 0 || maps_ % groups_ != 0)
    return fail(ErrorCode::invalid_argument, "{} groups do not divide {} input channels and {} output maps", groups_,
                channels, maps_);
  LATHE_ASSIGN(auto inputs, operands(lowering, channels, maps_ / groups_));
  DeconvolutionAttrs attributes;
  attributes.stride = window_.strides();
  attributes.pads_begin = window_.pads_begin();
  attributes.pads_end = window_.pads_end();
  attributes.dilation = window_.dilations();
  attributes.groups = groups_;
  LATHE_ASSIGN(attributes.padding_mode, to_ours(window_.mode));
  return std::vector{lowering.add(attributes, std::move(inputs))};
}

Result<ir::Value*> PoolingLayer::pool(LayerLowering& lowering, PoolingOp op) {
  PoolingAttrs attributes;
  attributes.op = op;
  attributes.window = to_ints(window_.window);
  attributes.stride = window_.strides();
  attributes.pads_begin = window_.pads_begin();
  attributes.pads_end = window_.pads_end();
  attributes.dilation = Ints(attributes.window.size(), 1);
  LATHE_ASSIGN(attributes.padding_mode, to_ours(window_.mode));
  attributes.count_include_pad = !exclusive_;
  return lowering.add(attributes, {in(0)});
}

Result<std::vector<ir::Value*>> PoolingLayer::lower(LayerLowering& lowering) {
  LATHE_TRY(window_.check(in(0)->rank()));
  if (type_ == nv::PoolingType::kMAX) {
    LATHE_ASSIGN(ir::Value * y, pool(lowering, PoolingOp::max));
    return std::vector{y};
  }
  LATHE_ASSIGN(ir::Value * average, pool(lowering, PoolingOp::average));
  if (type_ == nv::PoolingType::kAVERAGE) return std::vector{average};
  // (1 - f) * max + f * average
  LATHE_ASSIGN(ir::Value * max, pool(lowering, PoolingOp::max));
  ir::Value* factor = lowering.scalar_like(blend_, average);
  ir::Value* rest = lowering.scalar_like(1.0 - blend_, average);
  ir::Value* a = lowering.mul(average, factor);
  ir::Value* b = lowering.mul(max, rest);
  return std::vector{lowering.plus(a, b)};
}

nv::IConvolutionLayer* NetworkDefinition::addConvolutionNd(nv::ITensor& input, int64_t nbOutputMaps,
                                                           const nv::Dims& kernelSize, nv::Weights kernelWeights,
                                                           nv::Weights biasWeights) noexcept {
  return add<ConvolutionLayer>("INetworkDefinition::addConvolutionNd", {&input}, nbOutputMaps, kernelSize,
                               kernelWeights, biasWeights);
}

nv::IDeconvolutionLayer* NetworkDefinition::addDeconvolutionNd(nv::ITensor& input, int64_t nbOutputMaps,
                                                               const nv::Dims& kernelSize, nv::Weights kernelWeights,
                                                               nv::Weights biasWeights) noexcept {
  return add<DeconvolutionLayer>("INetworkDefinition::addDeconvolutionNd", {&input}, nbOutputMaps, kernelSize,
                                 kernelWeights, biasWeights);
}

nv::IPoolingLayer* NetworkDefinition::addPoolingNd(nv::ITensor& input, nv::PoolingType type,
                                                   const nv::Dims& windowSize) noexcept {
  return add<PoolingLayer>("INetworkDefinition::addPoolingNd", {&input}, type, windowSize);
}

}  // namespace lathe::api
