// SPDX-License-Identifier: Apache-2.0
// Tensors of which the first elements along an axis are computed anew while the rest stays as it is, as partial rotary
// positions leave the end of each head: concat(f(x[..., :r]), x[..., r:]).
//
// Where f(x) is sums and products along the way from the result to x, as x c + g is, the whole is one formula: what is
// added is 0 behind the part, and what is multiplied by is 1. So an expression reads x as a whole there, and the other
// operands with such fills.
#pragma once

#include <map>
#include <optional>

#include "ir/graph.h"

namespace lathe {

struct ComputedPart {
  std::map<const ir::Node*, size_t> way;      // from the concatenation's first input to `part`: which input goes on
  ir::Node *part = nullptr, *rest = nullptr;  // the slices of x
};
// What the concatenation joins, if it is that.
std::optional<ComputedPart> computed_part(const ir::Node& concat);

// The number that, read in place of this input, leaves the other one as it is; of nodes on the way.
float neutral_number(const ir::Node& node);
// Whether the node, which computes, makes zeros of zeros.
bool keeps_zeros(const ir::Node& node);

}  // namespace lathe
