// SPDX-License-Identifier: Apache-2.0
// Layers that are plugins of the application's.
#pragma once

#include "api/network/layer.h"
#include "plugin/building_plugin.h"

namespace lathe::api {

// Holds a clone of the application's plugin. Inputs are the plugin's, then its shape inputs.
class PluginV3Layer final : public LayerOf<nv::IPluginV3Layer, nv::apiv::VPluginV3Layer> {
 public:
  PluginV3Layer(NetworkDefinition& network, std::vector<TensorView*> inputs, size_t data_inputs, size_t outputs,
                std::unique_ptr<nv::IPluginV3> plugin)
      : LayerOf(network, nv::LayerType::kPLUGIN_V3, "PluginV3", std::move(inputs)),
        data_inputs_(data_inputs),
        outputs_(outputs),
        plugin_(std::move(plugin)) {}

  nv::IPluginV3& getPlugin() noexcept override { return *plugin_; }

  // What getOutputShapes() has declared when the layer was lowered last, in the numbering of op `plugin`.
  const std::vector<plugin::DeclaredSize>& sizes() const { return sizes_; }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
  size_t num_outputs() const override { return outputs_; }

  size_t data_inputs_, outputs_;
  std::unique_ptr<nv::IPluginV3> plugin_;
  std::vector<plugin::DeclaredSize> sizes_;
};

}  // namespace lathe::api
