// SPDX-License-Identifier: Apache-2.0
// Networks that hold one branch of an If alone, and rely on its condition.
#pragma once

#include <optional>
#include <set>

#include "lowering/build.h"

namespace lathe {

// What the profiles say of the conditions that a graph relies on (op `choose` that leaves one alternative out), by the
// names of the network's layers.
struct ReliedConditions {
  std::optional<std::string>
      never_met;               // the first that no sizes of the profiles meet: the graph needs the other branch
  std::set<std::string> open;  // left undecided by the profiles: sizes that do not meet them fail when run
};
ReliedConditions relied_conditions(ir::Graph graph, BuildOptions options);

}  // namespace lathe
