// SPDX-License-Identifier: Apache-2.0
#include "runtime/context_memory.h"

#include <algorithm>

#include "plan/windows.h"

namespace lathe {

ContextMemory::ContextMemory(const Engine& engine, PendingWork& work, MemoryPolicy policy)
    : engine_(engine),
      plan_(engine.plan()),
      work_(work),
      policy_(policy),
      elsewhere_(plan_.buffers.size()),
      step_scratch_(plan_),
      slots_(plan_.dynamic_slots),
      slot_tensors_(plan_.dynamic_slots) {
  for (plan::TensorId id = 0; id < plan_.tensors.size(); ++id)
    if (plan_.tensors[id].storage == plan::StorageKind::dynamic) slot_tensors_[plan_.tensors[id].index].push_back(id);
  find_slots_of_loops();
}

void ContextMemory::find_slots_of_loops() {
  in_loops_.resize(slots_.size());
  size_t end = 0;  // of the loops so far
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    if (i < end)
      for (const plan::TensorId id : plan_.steps[i].outputs)
        if (id != plan::kNoTensor && plan_.tensors[id].storage == plan::StorageKind::dynamic)
          in_loops_[plan_.tensors[id].index] = true;
    const auto* block = std::get_if<plan::Block>(&plan_.steps[i].work);
    if (block && block->kind == plan::BlockKind::loop) end = std::max<size_t>(end, engine_.places()[i].end);
  }
}

Result<> ContextMemory::reserve(size_t profile) {
  if (policy_ != MemoryPolicy::largest && policy_ != MemoryPolicy::by_profile) return {};
  size_t bytes = 0;
  for (size_t i = 0; i < plan_.profiles.size(); ++i) {
    if (policy_ == MemoryPolicy::by_profile && i != profile) continue;
    const MemoryLimit* limit = engine_.memory_limit(i);
    if (!limit) return {};
    bytes = std::max(bytes, limit->total());
    for (size_t slot = 0; slot < slots_.size(); ++slot)
      if (limit->dynamic[slot] > slots_[slot].size()) LATHE_TRY(work_.replace(slots_[slot], limit->dynamic[slot]));
  }
  return bytes > memory_size_ ? own(bytes) : Result<>();
}

// What only a run can size has no room in the arena but where that is limited.
Result<> ContextMemory::place(const ShapeBinding& shapes, std::span<const size_t> scratch) {
  std::vector<plan::Lifetime> lifetimes;
  now_.buffer_bytes.clear();
  for (const plan::Buffer& buffer : plan_.buffers) {
    const std::optional<int64_t> bytes = buffer.bytes.evaluate(shapes.symbols());
    if (!bytes) return fail(ErrorCode::shape_mismatch, "these shapes need a buffer of invalid size");
    // Of what a branch does not run, sizes may be negative; that of others has been checked.
    lifetimes.push_back({static_cast<size_t>(std::max<int64_t>(*bytes, 0)), buffer.first, buffer.last});
    now_.buffer_bytes.push_back(*bytes);
  }
  now_.scratch = step_scratch_.lifetimes(scratch);
  const MemoryLimit* limit = policy_ == MemoryPolicy::on_demand ? nullptr : engine_.memory_limit(shapes.profile());
  for (size_t i = 0; limit && i < plan_.steps.size(); ++i)
    if (const size_t s = step_scratch_.of(i); engine_.is_data_dependent_step(i))
      now_.scratch[s].bytes = limit->scratch[s].bytes;
  now_.arena = plan::arrange(lifetimes, now_.scratch, engine_.alignment());
  now_.arena.bytes = now_.arena.bytes > SIZE_MAX / 2 ? SIZE_MAX : engine_.align(now_.arena.bytes);
  now_.extra_offsets.assign(now_.scratch.size(), 0);
  now_.extra_bytes = 0;
  if (limit && now_.arena.bytes > limit->total()) place_as_limited(*limit);
  return {};
}

// What is smaller may happen to pack worse: never than the largest, for which there is room. Kernels may want more
// scratch for some shapes than for larger ones: that lies elsewhere.
void ContextMemory::place_as_limited(const MemoryLimit& limit) {
  now_.arena = limit.arena;
  std::vector<plan::Lifetime> extra = now_.scratch;
  for (size_t s = 0; s < extra.size(); ++s)
    if (now_.scratch[s].bytes <= limit.scratch[s].bytes) extra[s].bytes = 0;
  now_.extra_offsets = plan::plan_memory(extra, &now_.extra_bytes, engine_.alignment());
  now_.scratch = limit.scratch;
}

Result<> ContextMemory::set(void* memory, size_t bytes) {
  if (policy_ != MemoryPolicy::user)
    return fail(ErrorCode::invalid_state,
                "this context owns its memory: create it with user-managed memory to supply some");
  if (reinterpret_cast<uintptr_t>(memory) % engine_.alignment() != 0)
    return fail(ErrorCode::invalid_argument, "context memory at {} is not aligned to {} bytes", memory,
                engine_.alignment());
  if (memory && !engine_.device().is_accessible(memory))
    return fail(ErrorCode::invalid_argument, "context memory at {} is not memory of device {}", memory,
                engine_.device().name());
  if (!memory && bytes != 0) return fail(ErrorCode::invalid_argument, "{} bytes of context memory at null", bytes);
  if (memory != memory_) LATHE_TRY(work_.wait());
  memory_ = static_cast<std::byte*>(memory);
  memory_size_ = bytes;
  return {};
}

Result<> ContextMemory::set_temporaries(std::shared_ptr<Device> from) {
  LATHE_TRY(work_.wait());
  for (DeviceMemory& slot : slots_) slot = DeviceMemory();
  extra_ = DeviceMemory();
  temporaries_ = std::move(from);
  return {};
}

Result<> ContextMemory::own(size_t bytes) {
  Result<> replaced = work_.replace(own_, bytes);
  memory_ = own_.data();
  memory_size_ = own_.size();
  return replaced;
}

Result<> ContextMemory::provide() {
  LATHE_TRY(grow(extra_, now_.extra_bytes, temporaries()));
  if (now_.arena.bytes <= memory_size_) return {};
  if (policy_ != MemoryPolicy::user) return own(now_.arena.bytes);
  return fail(ErrorCode::memory_too_small, "these shapes need {} bytes of context memory, {} were supplied",
              now_.arena.bytes, memory_size_);
}

Result<std::byte*> ContextMemory::scratch(size_t step, size_t bytes) {
  if (bytes == 0) return nullptr;
  const size_t s = step_scratch_.of(step);
  if (bytes <= now_.scratch[s].bytes) return memory_ + now_.arena.scratch[s];
  LATHE_TRY(grow(extra_, now_.extra_offsets[s] + bytes, temporaries()));
  return extra_.data() + now_.extra_offsets[s];
}

// Steps may write a tensor part by part, and the slot must hold the whole when the first part is written, as growing
// loses what it held.
Result<> ContextMemory::provide_slot(uint32_t slot, const ShapeBinding& shapes) {
  size_t bytes = 64;
  for (const plan::TensorId id : slot_tensors_[slot]) {
    const plan::TensorDesc& tensor = plan_.tensors[id];
    LATHE_ASSIGN(const std::optional<int64_t> end, plan::window_end(plan_, tensor, shapes.symbols()));
    if (end) bytes = std::max(bytes, static_cast<size_t>(bytes_of(tensor.dtype, *end).value_or(0)));
  }
  DeviceMemory& memory = slots_[slot];
  if (in_loops_[slot] && memory.size() > 0 && bytes > memory.size()) {
    // Each round may want more than the one before: half as much again, where there is room for it.
    if (grow(memory, bytes + bytes / 2, temporaries())) return {};
  }
  return grow(memory, bytes, temporaries());
}

}  // namespace lathe
