// SPDX-License-Identifier: Apache-2.0
// Layers that are plugins of the application's.
#pragma once

#include "api/network/held_plugin.h"
#include "api/network/layer.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // plugins of the V2 family

namespace lathe::api {

// What all of them have.
class PluginLayer {
 public:
  PluginLayer(const PluginLayer&) = delete;
  PluginLayer& operator=(const PluginLayer&) = delete;
  HeldPlugin& held() const { return *held_; }

 protected:
  explicit PluginLayer(std::shared_ptr<HeldPlugin> held) : held_(std::move(held)) {}
  virtual ~PluginLayer() = default;  // to be found among layers

 private:
  std::shared_ptr<HeldPlugin> held_;
};

// Inputs are the plugin's, then its shape inputs.
template <class Interface, class Implementation>
class LayerOfPlugin : public LayerOf<Interface, Implementation>, public PluginLayer {
 public:
  LayerOfPlugin(NetworkDefinition& network, nv::LayerType type, const char* name, std::vector<TensorView*> inputs,
                std::shared_ptr<HeldPlugin> held)
      : LayerOf<Interface, Implementation>(network, type, name, std::move(inputs)), PluginLayer(std::move(held)) {}

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override {
    std::vector<ir::Value*> inputs;
    for (size_t i = 0; i < static_cast<size_t>(this->Layer::getNbInputs()); ++i) inputs.push_back(this->in(i));
    LATHE_ASSIGN(const PluginAttrs attrs, held().describe(this->name(), inputs));
    return lowering.add_all(attrs, std::move(inputs), held().outputs);
  }
  size_t num_outputs() const override { return held().outputs; }
};

class PluginV2Layer final : public LayerOfPlugin<nv::IPluginV2Layer, nv::apiv::VPluginV2Layer> {
 public:
  PluginV2Layer(NetworkDefinition& network, std::vector<TensorView*> inputs, std::shared_ptr<HeldPlugin> held)
      : LayerOfPlugin(network, nv::LayerType::kPLUGIN_V2, "PluginV2", std::move(inputs), std::move(held)) {}
  nv::IPluginV2& getPlugin() noexcept override { return held().v2->plugin(); }
};

class PluginV3Layer final : public LayerOfPlugin<nv::IPluginV3Layer, nv::apiv::VPluginV3Layer> {
 public:
  PluginV3Layer(NetworkDefinition& network, std::vector<TensorView*> inputs, std::shared_ptr<HeldPlugin> held)
      : LayerOfPlugin(network, nv::LayerType::kPLUGIN_V3, "PluginV3", std::move(inputs), std::move(held)) {}
  nv::IPluginV3& getPlugin() noexcept override { return *held().plugin; }
};

}  // namespace lathe::api

#pragma GCC diagnostic pop
