// SPDX-License-Identifier: Apache-2.0
#include "api/builder/debug_marks.h"

#include "api/network/plugin_layer.h"
#include "api/plan_keys.h"
#include "plugin/building_plugin.h"

namespace lathe::api {
namespace {

std::vector<const TensorView*> debug_tensors(const nv::INetworkDefinition& network) {
  std::vector<const TensorView*> tensors;
  for (int32_t l = 0; l < network.getNbLayers(); ++l)
    for (int32_t i = 0; i < network.getLayer(l)->getNbOutputs(); ++i)
      if (const auto* view = static_cast<const TensorView*>(network.getLayer(l)->getOutput(i)); view->is_debug())
        tensors.push_back(view);
  return tensors;
}

// What the application says of a layer, else what its plugin does.
Result<std::string> metadata_of(const nv::ILayer& layer) {
  const auto* const own = dynamic_cast<const PluginLayer*>(&layer);
  if (*layer.getMetadata() || !own) return layer.getMetadata();
  LATHE_ASSIGN(const auto asked, plugin::BuildingPlugin::of(*own->held().plugin, layer.getName()));
  return asked.metadata();
}

}  // namespace

Result<ir::Graph> graph_with_debug_outputs(NetworkDefinition& network) {
  for (const TensorView* tensor : debug_tensors(network))
    if (!tensor->is_output()) network.graph().add_output(tensor->value(), tensor->name());
  Result<ir::Graph> copy = network.whole_graph();
  network.refresh_outputs();  // the network's own outputs again
  return copy;
}

Result<> note_for_runtime(const NetworkDefinition& definition, plan::Plan& plan) {
  const nv::INetworkDefinition& network = definition;
  const auto note = [&](std::string_view key, std::string_view item, std::string_view value) {
    plan.metadata.emplace_back(std::string(key) + std::string(item), value);
  };
  for (const TensorView* tensor : debug_tensors(network))
    note(kDebugTensorKey, tensor->name(), tensor->is_output() ? kIsOutput : kIsHidden);
  if (definition.unfused_are_debug()) plan.metadata.emplace_back(kDebugUnfusedKey, "true");
  for (int32_t l = 0; l < network.getNbLayers(); ++l) {
    const nv::ILayer& layer = *network.getLayer(l);
    LATHE_ASSIGN(const std::string metadata, metadata_of(layer));
    if (!metadata.empty()) note(kLayerMetadataKey, layer.getName(), metadata);
  }
  return {};
}

}  // namespace lathe::api
