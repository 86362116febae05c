// SPDX-License-Identifier: Apache-2.0
// Which part of its storage a tensor touches: its window.
#pragma once

#include "base/result.h"
#include "plan/plan.h"

namespace lathe::plan {

// What holds so many elements: lathe::bytes_of() of a size that may not be known yet.
Expr bytes_of(DType type, const Expr& elements);

// Fails when range arithmetic proves that a window leaves its storage, whatever values the symbols have in `ranges`
// (those of all profiles together). The others are left to check_windows(), and so are those of tensors that matter
// only if a branch takes their body. Indices of the plan must have been checked before.
Result<> check_window_proofs(const Plan& plan, std::span<const Range> ranges);

// Under these values of the symbols, the number of elements from the start of its storage to the last that the tensor
// touches. nullopt where it touches none, or some symbol that it or its storage uses is Expr::kUnbound. Fails where it
// would begin before its storage or its size overflows.
Result<std::optional<int64_t>> window_end(const Plan& plan, const TensorDesc& t, std::span<const int64_t> values);

}  // namespace lathe::plan
