// SPDX-License-Identifier: Apache-2.0
// What tensors hold in trials.
#pragma once

#include "ops/tensor.h"

namespace lathe {

// Numbers as networks have them, levels well inside their range.
void fill_randomly(Tensor& tensor, uint32_t seed);
// Numbers of experts, which are below `count`.
void fill_with_ids(Tensor& tensor, int64_t count, uint32_t seed);

}  // namespace lathe
