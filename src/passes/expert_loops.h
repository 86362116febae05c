// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts that were written as a loop over experts: each gathers the tokens that have chosen it, and adds
// what it makes of them, weighed, to their places in the result.
#pragma once

#include "passes/rewrite.h"

namespace lathe {

// At the last addition: rows of all choices by the matrices of their experts, and their sum.
Result<bool> multiply_looped_experts(Rewrite& r);

}  // namespace lathe
