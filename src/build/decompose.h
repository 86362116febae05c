// SPDX-License-Identifier: Apache-2.0
// Softmax and normalisations of f64 as reductions and arithmetic, for targets whose kernels for rows take f32 alone.
#pragma once

#include "passes/pass.h"

namespace lathe {

// To be called after the passes, which would recognise what it makes.
Result<bool> decompose_doubles(ir::Graph& graph, PassContext& context);

}  // namespace lathe
