// SPDX-License-Identifier: Apache-2.0
#include "lowering/branches.h"

#include "ir/known_content.h"

namespace lathe {

ReliedConditions relied_conditions(const ir::Graph& graph) {
  ReliedConditions conditions;
  for (const auto& node : graph.nodes()) {
    if (!node->is(OpKind::choose) || (node->input(1) && node->input(2))) continue;
    const std::optional<Tensor> condition = ir::known_content(*node->input(0));
    if (!condition || condition->volume() != 1)
      conditions.open.insert(node->origin().front());
    else if (!conditions.never_satisfied && !node->input(condition->at(0) ? 1 : 2))
      conditions.never_satisfied = node->origin().front();
  }
  return conditions;
}

}  // namespace lathe
