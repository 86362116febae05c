// SPDX-License-Identifier: Apache-2.0
// Proof that a Plan is sound, for plans from our builder as well as from files. docs/plan_format.md lists the rules.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"

namespace lathe::plan {

// Everything that holds for all shapes. Windows whose bounds depend on symbols are proven here where range arithmetic
// can; the others are left to check_windows.
Result<> validate(const Plan& plan);

// Every window lies in its storage for these values of the symbols (parallel to Plan::symbols). Windows that use a
// symbol whose value is Expr::kUnbound are skipped: the context checks them when the step that uses them has its turn.
// Of windows into dynamic slots, whose sizes follow from their windows, only the start is checked. Tensors that are
// `left_out` (by tensor; empty = none) are checked by check_window() when it is known that they matter.
Result<> check_windows(const Plan& plan, std::span<const int64_t> symbol_values,
                       const std::vector<bool>& left_out = {});
Result<> check_window(const Plan& plan, const TensorDesc& tensor, std::span<const int64_t> symbol_values);

}  // namespace lathe::plan
