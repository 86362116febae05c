// SPDX-License-Identifier: Apache-2.0
#include "plan/conditional_tensors.h"

#include <algorithm>

namespace lathe::plan {
namespace {

// Behind the last step of the block's bodies.
size_t end_of(const Plan& plan, size_t block) {
  size_t end = block + 1;
  for (const Body& body : std::get<Block>(plan.steps[block].work).bodies) end += body.steps;
  return end;
}

}  // namespace

std::vector<bool> find_conditional_steps(const Plan& plan) {
  std::vector<bool> conditional(plan.steps.size());
  size_t end = 0;  // of the branches so far
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    conditional[i] = i < end;
    const auto* block = std::get_if<Block>(&plan.steps[i].work);
    if (block && block->kind == BlockKind::branch) end = std::max(end, end_of(plan, i));
  }
  return conditional;
}

std::vector<bool> find_conditional_tensors(const Plan& plan) {
  const std::vector<bool> steps = find_conditional_steps(plan);
  std::vector<bool> used(plan.tensors.size()), always(plan.tensors.size());
  const auto mark = [](std::vector<bool>& flags, const std::vector<TensorId>& ids) {
    for (const TensorId id : ids)
      if (id != kNoTensor) flags[id] = true;
  };
  for (const Binding& binding : plan.bindings) always[binding.tensor] = true;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const auto* block = std::get_if<Block>(&step.work);
    for (const auto* ids : {&step.inputs, &step.outputs}) mark(steps[i] && !block ? used : always, *ids);
    if (!block) continue;
    for (const Body& body : block->bodies) mark(always, body.params);
  }
  for (size_t id = 0; id < used.size(); ++id) used[id] = used[id] && !always[id];
  return used;
}

}  // namespace lathe::plan
