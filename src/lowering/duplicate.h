// SPDX-License-Identifier: Apache-2.0
// Doing something twice in place of storing it: each reader gets a node of its own, so that it can be fused there.
#pragma once

#include "ir/graph.h"
#include "tuning/backend_traits.h"

namespace lathe {

// Dequantised values: integers are read instead of floats. Those of weights that stay packed, or of all bytes.
Result<> duplicate_dequantization(ir::Graph& graph, const BackendTraits& traits);

// Floats that are widened for a reduction and for other expressions: both read the narrow ones. Example: the largest
// magnitude of each block of activations, and their levels.
Result<> duplicate_widening(ir::Graph& graph);

// Transposed values and views of slices that expressions alone read: memory is read in another order, and nothing
// copied. Example: rotary positions read the heads of a product forwards and backwards. With backends whose kernels
// compute what they read, slices likewise.
Result<> duplicate_movement(ir::Graph& graph, const BackendTraits& traits);

}  // namespace lathe
