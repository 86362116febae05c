// SPDX-License-Identifier: Apache-2.0
#include "plan/aliased_bindings.h"

#include <algorithm>

#include "plan/bindings_read.h"

namespace lathe::plan {
namespace {

bool has(const std::vector<TensorId>& ids, TensorId id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

// All of a binding's memory, and no window of it.
bool is_whole(const Plan& plan, TensorId id, bool is_input) {
  const TensorDesc& tensor = plan.tensors[id];
  return tensor.storage == StorageKind::binding && plan.bindings[tensor.index].is_input == is_input &&
         tensor.strides.empty() && tensor.offset == Expr(0) &&
         tensor.dims == plan.tensors[plan.bindings[tensor.index].tensor].dims;
}

}  // namespace

std::optional<uint32_t> aliased_input(const Plan& plan, uint32_t output) {
  for (auto copy = plan.steps.begin(); copy != plan.steps.end(); ++copy) {
    if (!copy->is<Copy>() || !is_whole(plan, copy->inputs[0], true) || !is_whole(plan, copy->outputs[0], false))
      continue;
    const TensorId copied = copy->outputs[0];
    const uint32_t input = plan.tensors[copy->inputs[0]].index;
    const bool is_changed =
        std::any_of(copy + 1, plan.steps.end(), [&](const Step& step) { return has(step.outputs, copied); });
    const bool is_read_later = std::any_of(copy + 1, plan.steps.end(), [&](const Step& step) {
      return reads_binding(plan, step, [input](uint32_t read) { return read == input; });
    });
    if (plan.tensors[copied].index == output && is_changed && !is_read_later) return input;
  }
  return std::nullopt;
}

}  // namespace lathe::plan
