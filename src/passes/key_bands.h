// SPDX-License-Identifier: Apache-2.0
// Recognises which keys masks show by the places of queries and keys alone: kernels compute that instead of reading it.
#pragma once

#include <functional>
#include <optional>

#include "ir/graph.h"

namespace lathe {

// Row i sees the columns from i + first to i + last, both included; nullopt = there is no end.
struct Band {
  std::optional<Expr> first, last;
};

// The part that is in both; nullopt where it is not known which end comes first.
std::optional<Band> common(const Band& a, const Band& b);

// Where `condition`, or its negation, is true, by the indices of its last two dimensions, whatever the others; nullopt
// where it is something else, as far as the ranges of symbols tell.
std::optional<Band> band_of(const ir::Value* condition, bool is_negated, const std::vector<Range>& ranges);

// A mask that is 0 in the band, and else `number`.
struct AdditiveBand {
  Band band;
  double number;
};
std::optional<AdditiveBand> additive_band_of(const ir::Value* mask, const std::vector<Range>& ranges);

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
