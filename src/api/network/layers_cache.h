// SPDX-License-Identifier: Apache-2.0
// Layers of models that generate text, and of models spread over several devices.
#pragma once

#include "api/network/layer.h"

namespace lathe::api {

// Inputs: cache, update, write indices; lengths of a packed update.
class KVCacheUpdateLayer final : public LayerOf<nv::IKVCacheUpdateLayer, nv::apiv::VKVCacheUpdateLayer> {
 public:
  KVCacheUpdateLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::KVCacheMode mode)
      : LayerOf(network, nv::LayerType::kKVCACHE_UPDATE, "KVCacheUpdate", std::move(inputs)), mode_(mode) {}

  bool setCacheMode(nv::KVCacheMode cacheMode) noexcept override;
  nv::KVCacheMode getCacheMode() const noexcept override { return mode_; }
  bool setUpdateForm(nv::AttentionIOForm form) noexcept override;
  nv::AttentionIOForm getUpdateForm() const noexcept override { return form_; }
  bool setUpdateLengths(nv::ITensor* lengths) noexcept override;
  nv::ITensor* getUpdateLengths() const noexcept override { return input(kLengths); }

 private:
  static constexpr size_t kLengths = 3;

  int32_t max_inputs() const override { return 4; }
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
  Result<> check_inputs() const;

  nv::KVCacheMode mode_;
  nv::AttentionIOForm form_ = nv::AttentionIOForm::kPADDED_BHND;
};

// Refused when the network is built: engines run on one device.
class DistCollectiveLayer final : public LayerOf<nv::IDistCollectiveLayer, nv::apiv::VDistCollectiveLayer> {
 public:
  DistCollectiveLayer(NetworkDefinition& network, std::vector<TensorView*> inputs)
      : LayerOf(network, nv::LayerType::kDIST_COLLECTIVE, "DistCollective", std::move(inputs)) {}

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
};

}  // namespace lathe::api
