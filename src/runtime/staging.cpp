// SPDX-License-Identifier: Apache-2.0
#include "runtime/staging.h"

#include <algorithm>

namespace lathe {

Staging::Staging(const Engine& engine, PendingWork& work)
    : engine_(engine),
      plan_(engine.plan()),
      work_(work),
      addresses_(plan_.bindings.size()),
      allocators_(plan_.bindings.size()),
      provided_(plan_.bindings.size()),
      blocks_(plan_.bindings.size()),
      overlaps_(plan_) {}

void Staging::put_address(size_t binding, void* address) {
  overlaps_are_checked_ = overlaps_are_checked_ && addresses_[binding] == address;
  addresses_[binding] = address;
}

void Staging::set_address(size_t binding, void* address) {
  put_address(binding, address);
  blocks_[binding].asked = nullptr;
  blocks_[binding].active = false;
}

void Staging::set_allocator(size_t binding, OutputAllocator allocator) { allocators_[binding] = std::move(allocator); }

Result<> Staging::find_out(size_t binding) {
  Block& block = blocks_[binding];
  void* const address = addresses_[binding];
  if (block.asked != address) {
    block.asked = address;
    block.active = address && !engine_.device().is_accessible(address);
  }
  if (!block.active || !engine_.device().is_host()) return {};
  return fail(ErrorCode::binding_invalid,
              "'{}' lies at {}, in memory of a GPU, which the CPU cannot read, and this engine is for the CPU ({}): "
              "build it for the GPU (LATHE_TARGET=cuda, or setTarget() of lathe.h), or give it memory of the host",
              plan_.bindings[binding].name, address, engine_.device().target());
}

Result<> Staging::stage(size_t binding, size_t bytes) {
  LATHE_TRY(find_out(binding));
  Block& block = blocks_[binding];
  if (!block.active || block.memory.size() >= bytes) return {};
  return work_.replace(block.memory, bytes);
}

// That kernels can read and write there.
Result<> Staging::check_address(size_t binding) {
  constexpr uintptr_t kDeviceAlignment = 16;  // kernels read and write so many bytes at a time
  LATHE_TRY(find_out(binding));
  void* const address = addresses_[binding];
  const bool is_used = !engine_.device().is_host() && !blocks_[binding].active;
  if (!is_used || reinterpret_cast<uintptr_t>(address) % kDeviceAlignment == 0) return {};
  return fail(ErrorCode::binding_invalid, "'{}' lies at {}, which is not aligned to {} bytes: allocate it by itself",
              plan_.bindings[binding].name, address, kDeviceAlignment);
}

Result<> Staging::check(const ShapeBinding& shapes) {
  for (size_t i = 0; i < addresses_.size(); ++i) {
    if (!allocators_[i]) LATHE_TRY(check_address(i));  // theirs is checked when they give it
    const bool may_have_elements = shapes.bytes(i) != 0 || engine_.is_data_dependent(plan_.bindings[i].tensor);
    if (!addresses_[i] && !allocators_[i] && may_have_elements)
      return fail(ErrorCode::binding_missing, "{} '{}' has no address: set it before running",
                  plan_.bindings[i].is_input ? "input" : "output", plan_.bindings[i].name);
  }
  return {};
}

// Meanwhile the address is that of the last run.
Result<> Staging::allocate(size_t binding, size_t bytes, const Dims& dims) {
  LATHE_ASSIGN(void* const memory, allocators_[binding](bytes, dims));
  put_address(binding, memory);
  if (memory) return check_address(binding);
  return fail(ErrorCode::out_of_memory, "the output allocator gave no memory for '{}'", plan_.bindings[binding].name);
}

Result<> Staging::provide_outputs(const ShapeBinding& shapes) {
  std::fill(provided_.begin(), provided_.end(), false);
  for (size_t i = 0; i < addresses_.size(); ++i) {
    if (!allocators_[i] || engine_.is_data_dependent(plan_.bindings[i].tensor)) continue;
    LATHE_TRY(allocate(i, shapes.bytes(i), shapes.dims(i)));
  }
  return check_overlaps(shapes);
}

// A block that stands for a tensor shares its memory with nothing. An output that its allocator has still to be asked
// for has the address of the last run, which the application may have given to another by now.
Result<> Staging::check_overlaps(const ShapeBinding& shapes) {
  if (overlaps_are_checked_) return {};
  ranges_.clear();
  for (uint32_t i = 0; i < addresses_.size(); ++i) {
    const bool is_old = allocators_[i] && !provided_[i] && engine_.is_data_dependent(plan_.bindings[i].tensor);
    if (!blocks_[i].active && !is_old)
      ranges_.push_back({static_cast<const std::byte*>(addresses_[i]), shapes.bytes(i), i});
  }
  LATHE_TRY(overlaps_.check(ranges_));
  overlaps_are_checked_ = true;
  return {};
}

Result<> Staging::provide_output(size_t binding, const ShapeBinding& shapes) {
  if (provided_[binding]) return {};
  LATHE_ASSIGN(const TensorArg whole, shapes.resolve(plan_.bindings[binding].tensor));
  const Dims dims(whole.dims, whole.dims + whole.rank);
  const std::optional<int64_t> count = checked_volume(dims), bytes = bytes_of(whole.dtype, count.value_or(-1));
  if (!bytes)
    return fail(ErrorCode::shape_mismatch, "output '{}' of dims {} has no valid size", plan_.bindings[binding].name,
                to_string(to_shape(dims)));
  if (allocators_[binding]) LATHE_TRY(allocate(binding, static_cast<size_t>(*bytes), dims));
  provided_[binding] = true;
  LATHE_TRY(stage(binding, static_cast<size_t>(*bytes)));
  check_overlaps_anew();
  return check_overlaps(shapes);
}

Result<> Staging::upload(const ShapeBinding& shapes, Queue& queue) {
  for (size_t i = 0; i < blocks_.size(); ++i) {
    LATHE_TRY(stage(i, shapes.bytes(i)));
    if (blocks_[i].active && plan_.bindings[i].is_input)
      LATHE_TRY(engine_.device().upload(blocks_[i].memory.data(), addresses_[i], shapes.bytes(i), queue));
  }
  return {};
}

Result<> Staging::download(const ShapeBinding& shapes, Queue& queue) {
  for (size_t i = 0; i < blocks_.size(); ++i)
    if (blocks_[i].active && !plan_.bindings[i].is_input)
      LATHE_TRY(engine_.device().download(addresses_[i], blocks_[i].memory.data(), shapes.bytes(i), queue));
  return {};
}

std::byte* Staging::data(size_t binding) const {
  return blocks_[binding].active ? blocks_[binding].memory.data() : static_cast<std::byte*>(addresses_[binding]);
}

}  // namespace lathe
