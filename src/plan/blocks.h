// SPDX-License-Identifier: Apache-2.0
// How blocks nest: steps lie in one list, in the order in which they would run once, and each body is a range of it.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"

namespace lathe::plan {

// Where a step stands.
struct StepPlace {
  uint32_t depth = 0;  // blocks around it
  uint32_t end = 0;    // behind the last step of its own: its own number + 1 where it is no block
};

// By step. Fails when a body leaves the body that its block is in, or blocks are more than kMaxBlockDepth deep.
Result<std::vector<StepPlace>> find_places(std::span<const Step> steps);

}  // namespace lathe::plan
