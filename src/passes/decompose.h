// SPDX-License-Identifier: Apache-2.0
// The rules of pass `decompose`: softmax, normalisations and convolutions of f64 and pooling of what is not f32, as
// reductions, products and arithmetic, and ops without a kernel as others.
#pragma once

#include "passes/rewrite.h"

namespace lathe {

#define LATHE_DECOMPOSITION(name, op, equation) Result<bool> decompose_##name(Rewrite& rewrite);
#include "passes/decompositions.def"
#undef LATHE_DECOMPOSITION

// A value for each channel, that is along dimension 1 of a tensor of that rank.
ir::Value* along_channels(Rewrite& rewrite, ir::Value* value, int rank);

}  // namespace lathe
