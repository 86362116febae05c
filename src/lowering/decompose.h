// SPDX-License-Identifier: Apache-2.0
// Softmax, normalisations and convolutions of f64 and pooling of what is not f32, as reductions, products and
// arithmetic, and ops without a kernel as others: for targets whose kernels for rows and windows take f32 alone.
#pragma once

#include "passes/rewrite.h"

namespace lathe {

// To be called after the passes, which would recognise what it makes.
Result<bool> decompose_doubles(ir::Graph& graph, PassContext& context);

#define LATHE_DECOMPOSITION(name, op, equation) Result<bool> decompose_##name(Rewrite& rewrite);
#include "lowering/decompositions.def"
#undef LATHE_DECOMPOSITION

// A value for each channel, that is along dimension 1 of a tensor of that rank.
ir::Value* along_channels(Rewrite& rewrite, ir::Value* value, int rank);

}  // namespace lathe
