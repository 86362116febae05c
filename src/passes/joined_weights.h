// SPDX-License-Identifier: Apache-2.0
// Weights of several matrices as those of one.
#pragma once

#include <vector>

#include "ops/tensor.h"

namespace lathe {

// One behind the other along an axis, on so many threads.
Result<Tensor> joined(const std::vector<Tensor>& parts, size_t axis, int threads);

// In turns along an axis: element 0 of each part, element 1 of each, and so on. Of one tensor, in turns of its halves.
Result<Tensor> joined_in_turns(const std::vector<Tensor>& parts, size_t axis, int threads);

}  // namespace lathe
