// SPDX-License-Identifier: Apache-2.0
// The constants of a network, those in bodies of control flow too.
#pragma once

#include <functional>

#include "ir/graph.h"

namespace lathe::ir {

enum class Where : uint8_t { network, body };

// Calls f with each constant and a name of it that no other has: that of its value, and a number where bodies have
// values of the same name. Equal networks give equal names.
void for_each_constant(const Graph& graph,
                       const std::function<void(const std::string& name, Value& constant, Where where)>& f);

}  // namespace lathe::ir
