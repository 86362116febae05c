// SPDX-License-Identifier: Apache-2.0
#include "lowering/branches.h"

#include "ir/known_content.h"
#include "lowering/constraints.h"

namespace lathe {

ReliedConditions relied_conditions(ir::Graph graph, BuildOptions options) {
  options.log = nullptr;
  // The build tells what fails here. The nodes before have the profiles' types by then, which is all that is asked.
  static_cast<void>(settle_shapes(graph, options));
  ReliedConditions conditions;
  for (const auto& node : graph.nodes()) {
    if (!node->is(OpKind::choose) || (node->input(1) && node->input(2))) continue;
    const std::optional<Tensor> condition = ir::known_content(*node->input(0));
    if (!condition || condition->volume() != 1)
      conditions.open.insert(node->origin().front());
    else if (!conditions.never_met && !node->input(condition->at(0) ? 1 : 2))
      conditions.never_met = node->origin().front();
  }
  return conditions;
}

}  // namespace lathe
