// SPDX-License-Identifier: Apache-2.0
// A plugin of a network's, which the network owns.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "plugin/building_plugin.h"
#include "plugin/v2_plugin.h"

namespace lathe::api {

struct HeldPlugin {
  // `v2` is the plugin where it is of the V2 family, else null; `layer` is told in errors.
  static Result<std::shared_ptr<HeldPlugin>> of(std::unique_ptr<plugin::nv::IPluginV3> plugin, plugin::V2Plugin* v2,
                                                size_t data_inputs, const std::string& layer);

  std::unique_ptr<plugin::nv::IPluginV3> plugin;
  plugin::V2Plugin* v2 = nullptr;
  size_t data_inputs = 0;  // the inputs behind them are shape inputs
  size_t outputs = 0;
  // What getOutputShapes() declared when it was asked last, in the numbering of op `plugin`.
  std::vector<plugin::DeclaredSize> sizes{};

  // What the plugin says of these inputs, as attributes of op `plugin`.
  Result<PluginAttrs> describe(const std::string& layer, const std::vector<ir::Value*>& inputs);

 private:
  Result<> check_sizes(const std::string& layer, const std::vector<ir::Value*>& inputs) const;
};

}  // namespace lathe::api
