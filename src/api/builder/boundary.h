// SPDX-License-Identifier: Apache-2.0
// Conversions between what the application's memory holds and what the network computes with.
#pragma once

#include <functional>

#include "ir/builder.h"
#include "ir/graph.h"

namespace lathe::api {

using Conversion = std::function<ir::Value*(ir::GraphBuilder& b, ir::Value* value)>;

// Makes `memory` the type of an input of the graph. All that read it, outputs of the graph among them, read what
// `convert` makes of it.
Result<> convert_input(ir::Graph& graph, ir::Value* input, ValueType memory, const Conversion& convert);
// Replaces an output of the graph by what `convert` makes of it.
Result<> convert_output(ir::Graph& graph, size_t output, const Conversion& convert);

}  // namespace lathe::api
