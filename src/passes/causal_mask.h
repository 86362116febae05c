// SPDX-License-Identifier: Apache-2.0
// Finds the condition that a query sees no later keys in masks of scores, which kernels need not read then.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace lathe {

// d where `condition`, or its negation, is (j <= i + d) for each query i and key j, which its last two dimensions
// count; nullopt where it is something else, as far as is known.
std::optional<Expr> diagonal_of(const ir::Value* condition, bool is_negated);

// d where `mask` is 0 if j <= i + d, and else one number of at most `low`, which goes to `hidden`.
std::optional<Expr> additive_diagonal_of(const ir::Value* mask, double low, double& hidden);

}  // namespace lathe
