// SPDX-License-Identifier: Apache-2.0
// Attention as the matrix products, the softmax and the pointwise ops that it consists of.
#pragma once

#include "passes/rewrite.h"

namespace lathe {

Result<bool> decompose_attention(Rewrite& rewrite);

}  // namespace lathe
