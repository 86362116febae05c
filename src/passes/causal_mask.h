// SPDX-License-Identifier: Apache-2.0
// Recognises causal masks, which kernels compute instead of reading them.
#pragma once

#include <functional>
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

// What a mask of constants says of keys, where all that it says of later ones, j > i + diagonal, is a low number.
struct LaterKeys {
  double number;     // the highest of theirs
  double nearest;    // in each row an earlier key has one that is at most so far from 0
  bool is_triangle;  // all earlier keys have 0
};
// `number_of`: what an element of the mask is for a key's score. nullopt where it is no constant, or later keys have a
// number above `low`.
std::optional<LaterKeys> later_keys_of(const ir::Value* mask, int64_t diagonal, double low,
                                       const std::function<double(double)>& number_of);

}  // namespace lathe
