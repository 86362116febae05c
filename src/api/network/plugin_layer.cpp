// SPDX-License-Identifier: Apache-2.0
#include "api/network/plugin_layer.h"

#include "api/deprecation.h"
#include "api/network/network_add.h"
#include "api/network/standard_plugins.h"
#include "base/own_object.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // plugins of the V2 family

namespace lathe::api {
namespace {

constexpr const char* kAdded = "that is added";
constexpr const char* kCloneIsNull = "the plugin's clone() gives null; the network keeps a clone";

void warn_of_deprecated(const onnx::StandardPlugin& plugin, Log& log) {
  std::vector<std::string> warnings;
  onnx::warn_of_deprecated(plugin.name, warnings);
  for (const std::string& warning : warnings) log.write(Severity::warning, warning);
}

}  // namespace

nv::IPluginV2Layer* NetworkDefinition::addPluginV2(nv::ITensor* const* inputs, int32_t nbInputs,
                                                   nv::IPluginV2& plugin) noexcept {
  static constinit Deprecation deprecation("INetworkDefinition::addPluginV2", "addPluginV3()");
  deprecation.tell(reporter());
  return guarded(entry(), "INetworkDefinition::addPluginV2", static_cast<nv::IPluginV2Layer*>(nullptr),
                 [&]() -> Result<nv::IPluginV2Layer*> {
                   if (nbInputs < 0 || (nbInputs > 0 && !inputs))
                     return fail(ErrorCode::invalid_argument, "there are {} inputs at {}", nbInputs,
                                 static_cast<const void*>(inputs));
                   std::vector<TensorView*> views(static_cast<size_t>(nbInputs));
                   for (size_t i = 0; i < views.size(); ++i) {
                     LATHE_ASSIGN(views[i], own(inputs[i]));
                   }
                   if (is_own<StandardPluginV2>(plugin)) {
                     const StandardNode& node = static_cast<StandardPluginV2&>(plugin).node();
                     warn_of_deprecated(node->plugin(), reporter().log());
                     return keep(std::make_unique<StandardV2Layer>(*this, nv::LayerType::kPLUGIN_V2, "PluginV2",
                                                                   std::move(views), node));
                   }
                   nv::IPluginV2* const clone = plugin.clone();
                   if (!clone) return fail(ErrorCode::invalid_argument, kCloneIsNull);
                   LATHE_ASSIGN(std::unique_ptr<plugin::V2Plugin> owned, plugin::V2Plugin::own(clone, kAdded));
                   plugin::V2Plugin* const v2 = owned.get();
                   LATHE_ASSIGN(auto held, HeldPlugin::of(std::move(owned), v2, views.size(), kAdded));
                   return keep(std::make_unique<PluginV2Layer>(*this, std::move(views), std::move(held)));
                 });
}

nv::IPluginV3Layer* NetworkDefinition::addPluginV3(nv::ITensor* const* inputs, int32_t nbInputs,
                                                   nv::ITensor* const* shapeInputs, int32_t nbShapeInputs,
                                                   nv::IPluginV3& plugin) noexcept {
  return guarded(
      entry(), "INetworkDefinition::addPluginV3", static_cast<nv::IPluginV3Layer*>(nullptr),
      [&]() -> Result<nv::IPluginV3Layer*> {
        if (nbInputs < 0 || nbShapeInputs < 0 || (nbInputs > 0 && !inputs) || (nbShapeInputs > 0 && !shapeInputs))
          return fail(ErrorCode::invalid_argument, "there are {} inputs at {} and {} shape inputs at {}", nbInputs,
                      static_cast<const void*>(inputs), nbShapeInputs, static_cast<const void*>(shapeInputs));
        std::vector<TensorView*> views;
        for (int32_t i = 0; i < nbInputs + nbShapeInputs; ++i) {
          LATHE_ASSIGN(TensorView * view, own(i < nbInputs ? inputs[i] : shapeInputs[i - nbInputs]));
          views.push_back(view);
        }
        if (is_own<StandardPluginV3>(plugin)) {
          if (nbShapeInputs > 0)
            return fail(ErrorCode::invalid_argument, "standard plugins have no shape inputs, and {} are given",
                        nbShapeInputs);
          return keep(std::make_unique<StandardV3Layer>(*this, nv::LayerType::kPLUGIN_V3, "PluginV3", std::move(views),
                                                        static_cast<StandardPluginV3&>(plugin).node()));
        }
        std::unique_ptr<nv::IPluginV3> clone(plugin.clone());
        if (!clone) return fail(ErrorCode::invalid_argument, kCloneIsNull);
        LATHE_ASSIGN(auto held, HeldPlugin::of(std::move(clone), nullptr, static_cast<size_t>(nbInputs), kAdded));
        return keep(std::make_unique<PluginV3Layer>(*this, std::move(views), std::move(held)));
      });
}

}  // namespace lathe::api
