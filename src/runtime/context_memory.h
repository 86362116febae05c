// SPDX-License-Identifier: Apache-2.0
// The memory that a context works in: the arena, and slots for tensors whose sizes only a run can tell.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plan/step_scratch.h"
#include "runtime/engine.h"
#include "runtime/pending_work.h"
#include "runtime/shape_binding.h"

namespace lathe {

// Where a context's memory comes from: the arena, and what the run alone can size.
enum class MemoryPolicy {
  on_demand,   // allocated, and allocated anew, as shapes need it
  largest,     // at creation, as much as any shapes of any profile need: running allocates none
  by_profile,  // as much as the current profile's shapes need, when it becomes current
  user,        // set()
};

// One block holds the arena, buffers and steps' scratch; it is the context's own or, by policy `user`, the
// application's. Blocks only grow, and only once no work of the context uses them. One thread at a time, as the context
// that owns it; the engine and the pending work outlive it, and the owner waits for that work before it goes.
class ContextMemory {
 public:
  ContextMemory(const Engine& engine, PendingWork& work, MemoryPolicy policy);

  // What the policy allocates ahead of all runs; `profile` is the one that becomes current. `largest` and `by_profile`
  // are `on_demand` where a profile has no limits.
  Result<> reserve(size_t profile);
  // Places the arena for these sizes, and scratch of so many bytes for each step.
  Result<> place(const ShapeBinding& shapes, std::span<const size_t> scratch);
  // What place() has found out; and that of the same sizes and scratch again, instead of place().
  struct Placement {
    plan::Arena arena;
    std::vector<int64_t> buffer_bytes;
    std::vector<plan::Lifetime> scratch;  // as there is room for in the arena
    std::vector<size_t> extra_offsets;    // of scratch that is not in the arena, in a block of its own
    size_t extra_bytes = 0;               // of that which is known before a run
  };
  const Placement& placement() const { return now_; }
  void use(const Placement& placement) { now_ = placement; }
  size_t bytes() const { return now_.arena.bytes; }
  // Memory of the application's (policy `user` only); null takes it away. A change waits for work in the former.
  Result<> set(void* memory, size_t bytes);

  // Where memory comes from that only a run can size, from now on; null = where the rest does. What the context holds
  // of it goes.
  Result<> set_temporaries(std::shared_ptr<Device> from);
  Device& temporaries() const { return temporaries_ ? *temporaries_ : engine_.device(); }

  // In a run. provide() sees to the block's size.
  Result<> provide();
  // Of so many bytes, in the arena where that has room for the step, else in a block of its own.
  Result<std::byte*> scratch(size_t step, size_t bytes);
  // Makes a slot as large as the largest of its tensors whose size is known by now.
  Result<> provide_slot(uint32_t slot, const ShapeBinding& shapes);

  // Makes a block of the owner's at least so large; what it held is lost where it was smaller.
  Result<> grow(DeviceMemory& block, size_t bytes) { return grow(block, bytes, engine_.device()); }
  // Each takes the other's place: of buffers of equal size, until place() or they change back.
  void swap_buffers(uint32_t a, uint32_t b) { std::swap(now_.arena.offsets[a], now_.arena.offsets[b]); }
  // The buffer is somewhere else; null = where it was placed.
  void move_buffer(uint32_t index, std::byte* place) { elsewhere_[index] = place; }
  int64_t buffer_bytes(uint32_t index) const { return now_.buffer_bytes[index]; }
  void swap_slots(uint32_t a, uint32_t b) { std::swap(slots_[a], slots_[b]); }

  const std::byte* base() const { return memory_; }
  const std::byte* extra_scratch() const { return extra_.data(); }  // that the arena has no room for
  size_t size() const { return memory_size_; }
  std::byte* buffer(uint32_t index) const {
    if (elsewhere_[index]) return elsewhere_[index];
    return memory_ ? memory_ + now_.arena.offsets[index] : nullptr;
  }
  const DeviceMemory& slot(uint32_t index) const { return slots_[index]; }
  MemoryPolicy policy() const { return policy_; }

 private:
  Result<> own(size_t bytes);
  Result<> grow(DeviceMemory& block, size_t bytes, Device& from) {
    return block.size() >= bytes ? Result<>() : work_.replace(block, bytes, from);
  }
  void find_slots_of_loops();
  void place_as_limited(const MemoryLimit& limit);

  const Engine& engine_;
  const plan::Plan& plan_;
  PendingWork& work_;
  MemoryPolicy policy_;
  Placement now_;
  std::vector<std::byte*> elsewhere_;  // where loops have moved them to; null = they have not
  plan::StepScratch step_scratch_;
  DeviceMemory own_;
  std::byte* memory_ = nullptr;  // own_, or the application's
  size_t memory_size_ = 0;
  DeviceMemory extra_;
  std::shared_ptr<Device> temporaries_;
  std::vector<DeviceMemory> slots_;
  std::vector<std::vector<plan::TensorId>> slot_tensors_;  // that lie in each
  std::vector<bool> in_loops_;                             // by slot: steps of loops write there
};

}  // namespace lathe
