// SPDX-License-Identifier: Apache-2.0
// What tensors hold in trials.
#pragma once

#include "ops/tensor.h"
#include "tuning/problem.h"

namespace lathe {

// Numbers as networks have them, levels well inside their range. Floats are of this standard deviation.
void fill_randomly(Tensor& tensor, uint32_t seed, float deviation = 1);
// Of an operand's numbers: 1, but for queries of attention whose scores would be larger than about 1, as those are that
// T5 trains to need no scale. Softmax of large scores follows a few keys, and multiplies what the scores are off by.
float deviation_of(const Problem& problem, const Operand& operand);
// Numbers of experts, which are below `count`.
void fill_with_ids(Tensor& tensor, int64_t count, uint32_t seed);

}  // namespace lathe
