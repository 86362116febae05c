// SPDX-License-Identifier: Apache-2.0
// Tensors that matter only if a branch takes their body.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace lathe::plan {

// By tensor: whether only steps of branches' bodies have it as an operand, and no block has it as an operand or param.
// Its sizes may make no sense where the body is not run: a slice of more than there is, say.
std::vector<bool> find_conditional_tensors(const Plan& plan);

// By step: whether it is in a body of a branch. Bodies nest.
std::vector<bool> find_conditional_steps(const Plan& plan);

}  // namespace lathe::plan
