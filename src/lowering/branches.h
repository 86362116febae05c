// SPDX-License-Identifier: Apache-2.0
// Networks that hold one branch of an If alone, and rely on its condition.
#pragma once

#include <optional>
#include <set>

#include "ir/graph.h"

namespace lathe {

// What is known of the conditions that a graph relies on (op `choose` that leaves one alternative out), by the names of
// the network's layers.
struct ReliedConditions {
  std::optional<std::string> never_satisfied;  // the first that no sizes satisfy: the graph needs the other branch
  std::set<std::string> open;                  // undecided: sizes that do not satisfy them fail when run
};
// Of all sizes that the graph's types allow: settle_shapes() makes them those of the profiles, also where it fails
// behind a branch that no sizes take.
ReliedConditions relied_conditions(const ir::Graph& graph);

}  // namespace lathe
