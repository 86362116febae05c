// SPDX-License-Identifier: Apache-2.0
// Which bytes of its storage a tensor touches.
#pragma once

#include "base/result.h"
#include "plan/plan.h"

namespace lathe::plan {

// Fails when a window is certain to leave its storage for all values of the symbols in `ranges` (of all profiles).
// Indices of the plan must have been checked before.
Result<> check_window_proofs(const Plan& plan, std::span<const Range> ranges);

// How many elements of its storage the tensor reaches over under these values; nullopt while they leave some symbol of
// it open. An error where it would begin before its storage.
Result<std::optional<int64_t>> window_end(const Plan& plan, const Tensor& t, std::span<const int64_t> values);

}  // namespace lathe::plan
