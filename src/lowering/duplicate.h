// SPDX-License-Identifier: Apache-2.0
// Computing something twice in place of storing it.
#pragma once

#include "ir/graph.h"

namespace lathe {

// Every reader of a dequantised value gets a node of its own, so that it can be fused there: integers are read instead
// of floats.
Result<> give_readers_their_own(ir::Graph& graph);

}  // namespace lathe
