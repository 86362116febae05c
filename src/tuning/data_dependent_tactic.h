// SPDX-License-Identifier: Apache-2.0
// Ops with data-dependent shapes on a device: only what it computes tells the size of their results. One step finds
// what belongs to the result and counts it, another, for which the host reads the count, writes it.
#pragma once

#include "tuning/tactic.h"

namespace lathe {

struct DataDependentEmission {
  Emission find;          // reads the op's inputs, writes `found`
  Emission write;         // reads the op's inputs and, as its last input, `found`
  Shape found;            // dims of a list of int64
  Expr count;             // which element of it holds the size
  size_t output_dim = 0;  // the dimension of the result that has this size
  // There is no count: while running, the host reads the op's small inputs, and the op's shape rule gives the sizes.
  // `write` then reads all of the op's inputs in their order, and the other members are not used.
  bool by_rule = false;
};
using DataDependentMatched = tl::expected<DataDependentEmission, Refusal>;

// Has no choice: a match is the steps.
struct DataDependentTactic {
  std::string_view name;
  DataDependentMatched (*match)(const Problem& problem);
};
using DataDependentTacticList = std::vector<DataDependentTactic>;

}  // namespace lathe
