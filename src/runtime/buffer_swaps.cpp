// SPDX-License-Identifier: Apache-2.0
#include "runtime/buffer_swaps.h"

#include "runtime/storage_uses.h"

namespace lathe {
namespace {

// Whether a value in one fits the other's place as it is.
bool same_layout(const plan::Plan& plan, const plan::TensorDesc& a, const plan::TensorDesc& b) {
  if (a.storage != b.storage || a.index == b.index || !(a.offset == b.offset)) return false;
  if (a.strides != b.strides || (!a.strides.empty() && a.dims != b.dims)) return false;
  return a.storage == plan::StorageKind::dynamic ||
         (a.storage == plan::StorageKind::arena && plan.buffers[a.index].bytes == plan.buffers[b.index].bytes);
}

}  // namespace

BufferSwaps::BufferSwaps(const plan::Plan& plan, size_t loop, std::span<const size_t> slots_begin,
                         ContextMemory& memory)
    : memory_(memory) {
  const plan::Step& step = plan.steps[loop];
  const auto& block = std::get<plan::Block>(step.work);
  if (block.kind != plan::BlockKind::loop) return;
  const StorageUses uses(plan, loop);
  const auto begins_here = [&](const plan::TensorDesc& tensor) {
    return (tensor.storage == plan::StorageKind::dynamic ? slots_begin[tensor.index]
                                                         : size_t{plan.buffers[tensor.index].first}) >= loop;
  };
  for (uint32_t i = 0; i < block.carried; ++i) {
    const plan::TensorId result = block.bodies[0].results[1 + i];
    const plan::TensorDesc &p = plan.tensors[block.bodies[0].params[2 + i]], &r = plan.tensors[result];
    // The result may be the output itself: it is copied to its place when that is not where it is in the end.
    const size_t most = step.outputs[i] == result ? 2 : 1;
    const bool possible =
        same_layout(plan, p, r) && uses.of(p) == 1 && uses.of(r) == most && begins_here(p) && begins_here(r);
    pairs_.push_back({&p, &r, possible});
  }
}

void BufferSwaps::swap_all(plan::StorageKind storage) {
  for (const Pair& pair : pairs_) {
    if (!pair.possible || pair.param->storage != storage) continue;
    if (storage == plan::StorageKind::arena)
      memory_.swap_buffers(pair.param->index, pair.result->index);
    else
      memory_.swap_slots(pair.param->index, pair.result->index);
  }
}

void BufferSwaps::next_round() {
  swap_all(plan::StorageKind::dynamic);
  swap_all(plan::StorageKind::arena);
  displaced_ = !displaced_;
}

void BufferSwaps::restore() {
  if (displaced_) swap_all(plan::StorageKind::arena);
  displaced_ = false;
}

}  // namespace lathe
