// SPDX-License-Identifier: Apache-2.0
// The sizes that the results of a plugin are made of.
#pragma once

#include "ir/graph.h"

namespace lathe {

// What the op's own symbols (ops/plugin.h) stand for in its graph: 0 for each of the `found`, which the plugin finds
// out, then what the inputs give, in their order.
std::vector<Expr> given_sizes(const ir::Node& node, size_t found);

}  // namespace lathe
