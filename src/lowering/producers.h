// SPDX-License-Identifier: Apache-2.0
// What a kernel does to an input of its root as it reads it: it reads another order than the input lies in, heads that
// are put together, say, or computes an expression, where this saves memory without doing the work again and again.
#pragma once

#include "lowering/region.h"

namespace lathe {

// The nodes that only move elements on their way to that input of the kernel's root, which alone reads them, as a
// region; nullopt where there are none, or an expression before them writes in that order anyway.
std::optional<Region> movement_before(const ir::Node& root, size_t input, const NodeOrder& order,
                                      const MayJoin& may_join);

// What is moved and computed, by nodes that may join, before an op writes it into its first input (kUpdates).
std::optional<Region> update_before(const ir::Node& root, const NodeOrder& order, const MayJoin& may_join);

// What a product computes of packed weights as it reads them: level and scale, and a zero point if there is one, of the
// same block. The dequantisation stays_packed().
Expression packed_weights(const ir::Node& dequantize, const NodeOrder& order);

// What normalises the rows of a product's first factor for it alone, where the product does that for each tile of its
// columns at less cost than to write them: of at most `most` rows, by constant weights or packed ones.
std::optional<Region> normalization_before(const ir::Node& root, const NodeOrder& order, int64_t most,
                                           const Arithmetic& arithmetic, CostModel& costs);

// Whether it costs less when all readers of the expression's result, kernels that can, compute it as they read
// it: each then reads the operands in its place, as often as it reads an element, and it is neither written nor read.
bool pays_to_recompute(const Region& region, const BackendTraits& traits, CostModel& costs);

// The expression's result as input `input` of a kernel for `reader`; nullopt where kernels do not compute that.
std::optional<Expression> prologue_for(const Region& region, const ir::Node& reader, size_t input,
                                       const BackendTraits& traits);

}  // namespace lathe
