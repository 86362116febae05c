// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"
#include "tuning/backend_traits.h"

namespace lathe {

// Worth a kernel of its own, whatever follows.
bool is_heavy(const ir::Node& node);

// Of a convolution, or null.
ir::Value* bias_of(const ir::Node& node);

// Whether the target's kernel for the node may compute what follows it, by its types.
bool takes_epilogue(const ir::Node& node, const BackendTraits& traits);

}  // namespace lathe
