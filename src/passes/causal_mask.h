// SPDX-License-Identifier: Apache-2.0
// Recognises causal masks, which kernels compute instead of reading them.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace lathe {

// The diagonal offset d where `condition`, or its negation, is (j <= i + d) for the indices i and j of its last two
// dimensions, whatever the others; nullopt where it is something else, as far as the ranges of symbols tell.
std::optional<Expr> diagonal_of(const ir::Value* condition, bool is_negated, const std::vector<Range>& ranges);

// A mask that is 0 where j <= i + diagonal, and else `number`.
struct AdditiveTriangle {
  Expr diagonal;
  double number;
};
std::optional<AdditiveTriangle> additive_triangle_of(const ir::Value* mask);

}  // namespace lathe
