// SPDX-License-Identifier: Apache-2.0
// Runs a graph by the plain evaluation of its ops: the oracle for whole networks.
#pragma once

#include "ir/graph.h"

namespace lathe::ir {

// Sees each value as it is computed (inputs too). Returning an error stops the run.
using Observer = std::function<Result<>(const Value& value, const Tensor& tensor)>;

// inputs[i] is the content of graph.inputs()[i]; its type must match and its dims must fit the declared shape.
// Values are released after their last reader.
Result<std::vector<Tensor>> interpret(const Graph& graph, std::span<const Tensor> inputs, const Observer& observe = {});

}  // namespace lathe::ir
