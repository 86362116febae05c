// SPDX-License-Identifier: Apache-2.0
#include "api/builder/layer_types.h"

#include <map>
#include <set>

#include "api/name_pattern.h"

namespace lathe::api {
namespace {

void merge(const PrecisionPin& setting, PrecisionPin& pin) {
  if (setting.precision) pin.precision = setting.precision;
  for (const auto& [output, type] : setting.outputs) {
    bool known = false;
    for (auto& [index, current] : pin.outputs)
      if (index == output) current = type, known = true;
    if (!known) pin.outputs.emplace_back(output, type);
  }
}

}  // namespace

Result<std::vector<PrecisionPin>> pins_of(const OwnSettings& settings, const ir::Graph& graph) {
  if (settings.constraints == PrecisionConstraints::kNONE) return std::vector<PrecisionPin>();
  std::set<std::string> layers;
  for (const auto& node : graph.nodes()) layers.insert(node->origin().begin(), node->origin().end());
  std::map<std::string, PrecisionPin> pins;
  for (const PrecisionPin& setting : settings.layer_types) {
    bool found = false;
    for (const std::string& layer : layers) {
      if (!matches(setting.layer, layer)) continue;
      found = true;
      PrecisionPin& pin = pins[layer];
      pin.layer = layer;
      merge(setting, pin);
    }
    if (!found)
      return fail(ErrorCode::config_invalid, "a type is set for layer '{}', which the network does not have",
                  setting.layer);
  }
  std::vector<PrecisionPin> result;
  for (auto& [layer, pin] : pins) result.push_back(std::move(pin));
  return result;
}

}  // namespace lathe::api
