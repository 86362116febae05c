// SPDX-License-Identifier: Apache-2.0
// In which types ops may compute: what the passes that narrow and widen floats share.
#pragma once

#include "ir/graph.h"

namespace lathe {

// follow: nothing is computed, so the op is of the type of what it moves.
enum class PrecisionRule { keep, lower, follow };

PrecisionRule precision_rule(const ir::Node& node);

// Inputs of other meaning than data keep their type: a resize's scales, say.
bool is_computed_with(const ir::Node& node, size_t input);

// Of a product: says what factors_of() its attributes is.
Result<> round_factors(ir::Graph& graph, ir::Node& node, DType to);

// A cast named after the value and the type: "x_f16", of the layers `origin`, or a layer of its own where there are
// none.
Result<ir::Value*> add_named_cast(ir::Graph& graph, ir::Value* value, DType to, std::vector<std::string> origin,
                                  ir::Node* before);

}  // namespace lathe
