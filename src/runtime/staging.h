// SPDX-License-Identifier: Apache-2.0
// Where the tensors of bindings lie: at the application's addresses, or in memory of the device that stands for them.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "runtime/overlap_check.h"
#include "runtime/pending_work.h"
#include "runtime/shape_binding.h"

namespace lathe {

// Gives memory for an output whose size is known only while running; null = there is none. Called once per run, at the
// moment the size is known.
using OutputAllocator = std::function<Result<void*>(size_t bytes, const Dims& dims)>;

// A binding whose address the device cannot read is staged: steps use a block of the device's memory, which is copied
// to before the steps (inputs) or from after them (outputs). Memory at addresses belongs to the application and lives
// until the run is done. One thread at a time, as the context that owns it; the engine and the pending work outlive it,
// and the owner waits for that work before it goes.
class Staging {
 public:
  Staging(const Engine& engine, PendingWork& work);

  void set_address(size_t binding, void* address);
  void set_allocator(size_t binding, OutputAllocator allocator);
  void* address(size_t binding) const { return addresses_[binding]; }
  std::span<void* const> addresses() const { return addresses_; }

  // Finds out whether a binding is staged and, if so, sees that its block has so many bytes.
  Result<> stage(size_t binding, size_t bytes);
  // That each tensor has an address, unless an allocator will give it one, at which kernels can read and write.
  Result<> check(const ShapeBinding& shapes);
  // Begins a run: asks allocators for the memory of outputs of known size, and checks that tensors do not overlap.
  Result<> provide_outputs(const ShapeBinding& shapes);
  // In the midst of a run, for one whose size has become known: asks its allocator, if it has one, and sees that a
  // block that stands for it is large enough. Once, for the whole output, whichever part of it is written first.
  Result<> provide_output(size_t binding, const ShapeBinding& shapes);
  Result<> upload(const ShapeBinding& shapes, Queue& queue);    // staged inputs, before the steps
  Result<> download(const ShapeBinding& shapes, Queue& queue);  // staged outputs, after them

  // Sizes have changed.
  void check_overlaps_anew() { overlaps_are_checked_ = false; }

  // Where steps find the tensor; null when the application has given no memory (yet).
  std::byte* data(size_t binding) const;

 private:
  // Whether a binding is staged. Fails where nothing can be: the host reads no memory of a GPU.
  Result<> find_out(size_t binding);
  struct Block {
    DeviceMemory memory;
    const void* asked = nullptr;  // the address that `active` tells of: the driver is asked once
    bool active = false;
  };
  void put_address(size_t binding, void* address);
  Result<> check_address(size_t binding);
  Result<> allocate(size_t binding, size_t bytes, const Dims& dims);
  Result<> check_overlaps(const ShapeBinding& shapes);

  const Engine& engine_;
  const plan::Plan& plan_;
  PendingWork& work_;
  // All per binding.
  std::vector<void*> addresses_;
  std::vector<OutputAllocator> allocators_;
  std::vector<bool> provided_;  // its allocator has been asked in this run
  std::vector<Block> blocks_;
  OverlapCheck overlaps_;
  bool overlaps_are_checked_ = false;  // since addresses or sizes changed
  std::vector<OverlapCheck::Range> ranges_;
};

}  // namespace lathe
