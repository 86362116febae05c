// SPDX-License-Identifier: Apache-2.0
// Ops for which such targets have no kernel of their own, as those that they have.
#pragma once

#include "passes/rewrite.h"

namespace lathe {

// x / |x|_p along an axis, where that is not 0.
Result<bool> decompose_lp_normalization(Rewrite& rewrite);
// one_hot(where the largest element is)
Result<bool> decompose_hardmax(Rewrite& rewrite);
// Of integers: x < 0 ? x * slope : x
Result<bool> decompose_prelu(Rewrite& rewrite);
// x / (bias + alpha / size * sum of the squares of so many channels)^beta
Result<bool> decompose_lrn(Rewrite& rewrite);
// Of more than two operands, one after the other.
Result<bool> decompose_einsum(Rewrite& rewrite);

}  // namespace lathe
