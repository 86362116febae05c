// SPDX-License-Identifier: Apache-2.0
// Some columns of a product's result, which stand for all where the plain evaluation of all would take long.
#pragma once

#include <utility>

#include "tuning/problem.h"

namespace lathe {

// Where the parts of the op's dimension `at` begin and end.
std::pair<size_t, size_t> parts_of(const Operand& operand, size_t at);

// What is evaluated plainly in about a second by one thread: more rows of a product are left out first, and columns
// where too few rows are left.
inline constexpr double kMostCheckedProducts = 4e8;

// The columns of the output that are evaluated plainly, so that there are about so many products; empty = all. Kernels
// compute all columns, of all weights. The first and the last columns are checked without a gap, a quarter of them or
// more at each end, which are several tiles. The distance of those between has no factor in common with a tile's width,
// so that they lie at different columns of their tiles.
std::vector<int64_t> checked_columns(const Problem& problem, double most_products = kMostCheckedProducts);

}  // namespace lathe
