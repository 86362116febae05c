// SPDX-License-Identifier: Apache-2.0
// What kernels are tuned for where sizes are known while running only.
#pragma once

#include "ir/graph.h"

namespace lathe {

// `sizes` by symbol, of the inputs as a profile has them for its optimum, with values for the others
// (SymbolSource::computed) in place of Expr::kUnbound. What follows from the inputs' sizes alone is exact: sizes that a
// network works out of Shape for a Resize or a Pad, in whatever arithmetic, are worked out by plain evaluation. Where
// data decides, as in NonZero, it is the most that the op's rule allows, up to a thousand, and at least 1.
std::vector<int64_t> estimate_sizes(const ir::Graph& graph, std::vector<int64_t> sizes);

}  // namespace lathe
