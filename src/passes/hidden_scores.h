// SPDX-License-Identifier: Apache-2.0
// How a change of an attention's scores hides keys.
#pragma once

#include <limits>

#include "passes/attention_scores.h"

namespace lathe {

inline constexpr double kLow = -1e30;  // scores do not change what this or less is added to
inline constexpr double kNear = 1e22;  // nor kLow by what is added that is no farther from 0
inline constexpr double kLowestHalf = -65504;
inline constexpr double kNothing = -std::numeric_limits<double>::infinity();

// A change that hides keys, and what it adds to the scores of the others; null = nothing.
struct Hiding {
  ScoreChange change;
  ir::Value* added = nullptr;
};

// A sum with select(c, x, low) is select(c, score + x, low). nullopt where a change that adds hides no keys, or by a
// number above `low`. No condition is the negation of another.
std::optional<Hiding> hiding_of(const ScoreChange& change, double low);

// By a condition, where hiding is all that it does; else unchanged.
ScoreChange as_hiding(const ScoreChange& change);

// What is joined by that operation, on all levels, as far as these are few terms.
void add_terms(ir::Value* whole, ElementwiseOp op, std::vector<ir::Value*>& terms);

}  // namespace lathe
