// SPDX-License-Identifier: Apache-2.0
// How a constant follows from weights that can be replaced once the engine is built: an expression whose leaves are
// such weights and constants that stay, and which is evaluated anew with other weights. Folding builds it along with
// the content.
#pragma once

#include "ops/op.h"
#include "ops/packing.h"

namespace lathe {

struct Derivation;
using DerivationPtr = std::shared_ptr<const Derivation>;

// One of four: weights, a constant that stays, an op's result, or what a packing makes of one input. Immutable.
struct Derivation {
  std::optional<uint32_t> weights;  // their number in the build
  Tensor constant;
  std::unique_ptr<const Attributes> attributes;
  std::optional<Packing> packing;
  std::vector<DerivationPtr> inputs;  // null = omitted
  std::shared_ptr<const int> step;    // the same for all results of one op
  size_t num_outputs = 1, output = 0;

  static DerivationPtr of_weights(uint32_t number);
  static DerivationPtr of_constant(Tensor content);
  static DerivationPtr of_packing(Packing packing, DerivationPtr source);
};

// A content that is known while building, and what it follows from; null = it stays.
struct Known {
  Tensor content;
  DerivationPtr derivation;
};

// The op's plain evaluation, whose results follow from weights where an input does. Undefined content = omitted.
Result<std::vector<Known>> compute(const Attributes& attributes, std::span<const Known> inputs, size_t num_outputs);

}  // namespace lathe
