// SPDX-License-Identifier: Apache-2.0
#include "api/builder/composed_attention.h"

#include <algorithm>

#include "api/network/attention.h"

namespace lathe::api {
namespace {

// What computes something of a layer.
std::vector<const RegionReport*> steps_of(const BuildReport& report, const std::string& layer) {
  std::vector<const RegionReport*> steps;
  for (const RegionReport& region : report.regions)
    if (region.kind != "copy" && std::ranges::count(region.origin, layer) > 0) steps.push_back(&region);
  return steps;
}

// A kernel of attention, or its plain evaluation.
bool is_whole(const RegionReport* step) { return step->tactic.starts_with("attention") || step->op == "attention"; }

}  // namespace

void warn_of_composed_attention(const NetworkDefinition& network, const BuildReport& report, Log& log) {
  for (const auto& attention : network.attentions()) {
    if (attention->getDecomposable()) continue;
    const std::vector<const RegionReport*> steps = steps_of(report, attention->layer_name());
    if (steps.size() < 2 || std::ranges::any_of(steps, is_whole)) continue;
    log.print(Severity::warning,
              "no kernel takes attention '{}' whole, so that it is computed in {} steps; setDecomposable(true) says "
              "that it may be",
              attention->getName(), steps.size());
  }
}

}  // namespace lathe::api
