// SPDX-License-Identifier: Apache-2.0
// Which constants of a plan are elements of weights in another order, and in which: by this, plans of several targets
// find what of one follows from what another holds (plan/shared_weights.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ops/packing.h"
#include "plan/plan.h"

namespace lathe::plan {

struct ConstantOrder {
  uint32_t constant = 0;
  Digest weights{};  // of their bytes, as they were before they were packed
  Packing packing;
};

// In Plan::metadata: a line for each, of the constant's number, the digest and the numbers of the packing.
inline constexpr std::string_view kOrdersKey = "lathe.orders";
std::string orders_text(std::span<const ConstantOrder> orders);

// Those that the plan names.
Result<std::vector<ConstantOrder>> orders_of(const Plan& plan);

}  // namespace lathe::plan
