// SPDX-License-Identifier: Apache-2.0
// Some columns of a product's result, which stand for all where the plain evaluation of all would take long.
#pragma once

#include <utility>

#include "tuning/problem.h"

namespace lathe {

// Where the parts of the op's dimension `at` begin and end.
std::pair<size_t, size_t> parts_of(const Operand& operand, size_t at);

// Half a second of one thread.
inline constexpr double kMostCheckedProducts = 3e8;

// The columns of the output that are evaluated plainly, so that there are about so many products; empty = all. Kernels
// compute all columns, of all weights. The first and the last columns are checked without a gap, several tiles of each.
// The distance of those between them has no factor in common with a tile's width, so that some tile is checked at each
// of its columns.
std::vector<int64_t> checked_columns(const Problem& problem, double most_products = kMostCheckedProducts);

}  // namespace lathe
