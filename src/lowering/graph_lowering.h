// SPDX-License-Identifier: Apache-2.0
// One graph on its way into a plan: the network's, or a body of its control flow.
#pragma once

#include "lowering/region_lowering.h"

namespace lathe {

struct GraphLowering {
  // `outer`: the tensors of the graph that a body is in; null for the network's.
  GraphLowering(const ir::Graph& graph, const LoweringContext& context, PlanTensors* outer = nullptr);

  CostModel costs;
  const std::vector<Region> regions;
  const Placement placement;
  RegionLowering lowering;
};

}  // namespace lathe
