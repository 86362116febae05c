// SPDX-License-Identifier: Apache-2.0
// The equation of an einsum.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace lathe {

// Every dim of an operand carries a label. Letters stand for themselves; the dims of an ellipsis get labels from
// kEllipsis on, counted from the last one, so that ellipses align at the right.
using Label = int;
constexpr Label kEllipsis = 256;

struct Subscripts {
  std::vector<std::vector<Label>> operands;
  std::vector<Label> output;
};
Result<Subscripts> parse_subscripts(std::string equation, const std::vector<int64_t>& ranks);

// Labels in the order of evaluation: those of the output, then the summed ones.
Result<std::vector<Label>> all_labels(const Subscripts& subscripts, std::string_view equation);

}  // namespace lathe
