// SPDX-License-Identifier: Apache-2.0
#include "runtime/storage_uses.h"

namespace lathe {

StorageUses::StorageUses(const plan::Plan& plan, size_t loop) {
  const plan::Step& step = plan.steps[loop];
  const plan::Body& body = std::get<plan::Block>(step.work).bodies[0];
  for (const auto* ids : {&body.params, &body.results, &step.inputs, &step.outputs})
    for (const plan::TensorId id : *ids)
      if (id != plan::kNoTensor) ++uses_[storage_of(plan.tensors[id])];
  const auto write = [&](const std::vector<plan::TensorId>& ids) {
    for (const plan::TensorId id : ids)
      if (id != plan::kNoTensor) written_.insert(storage_of(plan.tensors[id]));
  };
  for (size_t i = loop + 1; i < loop + 1 + body.steps; ++i) {
    write(plan.steps[i].outputs);
    const auto* block = std::get_if<plan::Block>(&plan.steps[i].work);
    if (!block) continue;
    for (const plan::Body& inner : block->bodies) write(inner.params);
  }
}

size_t StorageUses::of(const plan::TensorDesc& tensor) const {
  const auto found = uses_.find(storage_of(tensor));
  return found == uses_.end() ? 0 : found->second;
}

}  // namespace lathe
