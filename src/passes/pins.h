// SPDX-License-Identifier: Apache-2.0
// Layers whose types the application fixed (PassContext::pins), and the nodes that stand for them.
#pragma once

#include "passes/pass.h"

namespace lathe {

// Fails when a pin names no layer of the network, or asks for what no layer can have. Rounds the outputs that are
// pinned to 16-bit floats. To be called before the passes.
Result<> apply_pins(ir::Graph& graph, PassContext& context);

// The type in which the node has to compute. Of several layers that became one node, the widest; the others are unmet.
std::optional<DType> pinned_precision(const ir::Node& node, PassContext& context);
// Whether a pin keeps the node from computing with integers.
bool keeps_floats(const ir::Node& node, PassContext& context);

// Notes, once, that a pin on the node could not be honoured.
void note_unmet(const ir::Node& node, std::string_view reason, PassContext& context);

// After the passes: an error that lists what is unmet where pins are to be obeyed, warnings otherwise.
Result<> report_unmet_pins(const ir::Graph& graph, PassContext& context, Log& log);

}  // namespace lathe
