// SPDX-License-Identifier: Apache-2.0
// Ops whose result's size only its data tells, on a device: one step finds what belongs to the result and counts it,
// another, for which the host reads the count, writes it.
#pragma once

#include "tuning/tactic.h"

namespace lathe {

struct CountedEmission {
  Emission find;          // reads the op's inputs, writes `found`
  Emission write;         // reads the op's inputs and, as its last input, `found`
  Shape found;            // dims of a list of int64
  Expr count;             // which element of it holds the size
  size_t output_dim = 0;  // the dimension of the result that is counted
  // Nothing is counted: while running, the host reads the op's small inputs, and the op's shape rule gives the sizes.
  // `write` then reads all of the op's inputs in their order, and the other members are not used.
  bool by_rule = false;
};

class CountedTactic {
 public:
  virtual ~CountedTactic() = default;
  virtual std::string_view name() const = 0;
  virtual bool takes(const Problem& problem) const = 0;
  virtual Result<CountedEmission> emit(const Problem& problem) const = 0;
};

using CountedTacticList = std::vector<const CountedTactic*>;

}  // namespace lathe
