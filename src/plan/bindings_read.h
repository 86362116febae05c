// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "plan/plan.h"

namespace lathe::plan {

// Whether the step reads the memory of a binding of which `is_meant` holds, as an operand or as what a body leaves.
template <class F>
bool reads_binding(const Plan& plan, const Step& step, F&& is_meant) {
  const auto any = [&](const std::vector<TensorId>& ids) {
    return std::any_of(ids.begin(), ids.end(), [&](TensorId id) {
      return id != kNoTensor && plan.tensors[id].storage == StorageKind::binding && is_meant(plan.tensors[id].index);
    });
  };
  const auto* block = std::get_if<Block>(&step.work);
  return any(step.inputs) || (block && std::any_of(block->bodies.begin(), block->bodies.end(),
                                                   [&](const Body& body) { return any(body.results); }));
}

}  // namespace lathe::plan
