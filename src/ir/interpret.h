// SPDX-License-Identifier: Apache-2.0
// Runs a graph by the plain evaluation of its ops: the oracle for whole networks.
#pragma once

#include "ir/graph.h"

namespace lathe::ir {

// Sees each value as it is computed (inputs too). Returning an error stops the run.
using Observer = std::function<Result<>(const Value& value, const Tensor& tensor)>;

// Floats that are computed in: those of the network, or f64 instead of them, also of results (ir/doubles.h).
enum class Floats : uint8_t { as_declared, doubles };

// inputs[i] is the content of graph.inputs()[i]; its type must match and its dims must fit the declared shape.
// Values are released after their last reader.
Result<std::vector<Tensor>> interpret(const Graph& graph, std::span<const Tensor> inputs, const Observer& observe = {},
                                      Floats floats = Floats::as_declared);

}  // namespace lathe::ir
