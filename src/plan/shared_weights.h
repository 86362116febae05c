// SPDX-License-Identifier: Apache-2.0
// The weights of several plans as a file holds them: what is equal once, and of what is the same in several orders
// (plan/constant_orders.h) one, of which the others are derived when a variant is taken out.
#pragma once

#include "plan/derived_weights.h"
#include "plan/plan.h"

namespace lathe::plan {

enum class Sharing : uint8_t { equal, derived };

struct SharedWeights {
  std::vector<std::pair<uint64_t, std::span<const std::byte>>> parts;  // those that the file holds: offset, bytes
  uint64_t bytes = 0;                                                  // of all parts, with the gaps
  std::vector<DerivedPiece> derived;
  std::vector<std::vector<WeightsWindow>> pieces;  // by plan: what its weights are

  void write(std::span<std::byte> to) const;
};

// The plans' weights, which they refer to, must outlive the result.
Result<SharedWeights> share_weights(std::span<const Plan* const> plans, Sharing sharing);

}  // namespace lathe::plan
