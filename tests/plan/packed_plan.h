// SPDX-License-Identifier: Apache-2.0
// Plans whose weights are those of another plan in another order.
#pragma once

#include "ops/pack_bytes.h"
#include "plan/constant_orders.h"
#include "plan/random_plan.h"

namespace lathe::plan {

// Whether the plan says how they are packed.
enum class Orders : uint8_t { named, unnamed };
// Each constant is as many floats as the packing takes.
inline void pack_weights(OwnedPlan& owned, const Packing& packing, Orders names) {
  Plan& plan = owned.plan;
  std::vector<ConstantOrder> orders;
  std::vector<std::byte> packed;
  for (uint32_t i = 0; i < plan.constants.size(); ++i) {
    Constant& constant = plan.constants[i];
    const auto source = plan.weights.subspan(constant.offset, constant.bytes);
    orders.push_back({i, constant.digest, packing});
    constant.offset = (packed.size() + 63) / 64 * 64;
    constant.bytes = static_cast<uint64_t>(*checked_volume(packing.dims)) * sizeof(float);
    packed.resize(constant.offset + constant.bytes);
    pack_bytes(packing, sizeof(float), source.data(), packed.data() + constant.offset);
    constant.digest = digest_of(std::span(packed).subspan(constant.offset));
  }
  owned.weights = std::move(packed);
  plan.weights = owned.weights;
  if (names == Orders::named) plan.metadata.emplace_back(kOrdersKey, orders_text(orders));
}

}  // namespace lathe::plan
