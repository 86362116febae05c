// SPDX-License-Identifier: Apache-2.0
// Einsums beside a softmax as products of matrices.
#pragma once

#include "passes/rewrite.h"

namespace lathe {

// einsum(a, b) = transpose(matmul(transpose(a), transpose(b))), for one of which a softmax is made, or that multiplies
// one: attention is looked for between matmuls. Others stay, as kernels read their operands where they lie.
Result<bool> einsum_to_matmul(Rewrite& r);

}  // namespace lathe
