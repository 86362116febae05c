// SPDX-License-Identifier: Apache-2.0
// The constants of an engine that need not all lie in its device's memory: they lie in the host's, and those for which
// a budget has no room are copied while a context runs (runtime/weight_stream.h). Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "device/device.h"
#include "plan/blocks.h"

namespace lathe {

class StreamedWeights {
 public:
  struct Piece {
    uint32_t constant = 0;
    size_t offset = 0;  // in the buffer that the step's constants are copied to
  };
  // A step that needs constants which are copied.
  struct StreamingStep {
    size_t step = 0;
    std::vector<Piece> pieces;
  };
  // Where the constants lie for contexts.
  struct Placement {
    DeviceMemory memory;                      // of those that the budget has room for
    std::vector<const std::byte*> on_device;  // by constant; null = it is copied
    std::vector<StreamingStep> steps;         // in their order
    size_t buffer_bytes = 0;                  // that the pieces of any of these steps need
  };

  // Copies the plan's weights to pinned memory, and to the device those that always lie there. The plan must outlive
  // it; its weights are not looked at later. Null where the device's memory is the host's.
  static Result<std::unique_ptr<StreamedWeights>> create(const plan::Plan& plan,
                                                         const std::vector<plan::StepPlace>& places,
                                                         std::shared_ptr<Device> device);

  // Of the constants that need not lie on the device, with their padding. Others are small, are read by the host, by
  // plugins or within loops and branches.
  size_t streamable_bytes() const { return streamable_bytes_; }
  // The most bytes of these that lie on the device; streamable_bytes() at first: none is copied.
  size_t budget() const;
  // Refused while contexts are there, which have the former placement.
  Result<> set_budget(size_t bytes);
  size_t scratch_bytes() const;  // that a context takes besides under this budget: two buffers
  size_t placed_bytes() const;   // of the budget, that are allocated now

  // Places the constants, unless they are placed already.
  Result<std::shared_ptr<const Placement>> place();
  const std::byte* on_host(uint32_t constant) const { return host_.data() + plan_.constants[constant].offset; }
  std::span<const std::byte> all_on_host() const { return {host_.data(), host_.size()}; }

 private:
  StreamedWeights(const plan::Plan& plan, std::shared_ptr<Device> device) : plan_(plan), device_(std::move(device)) {}
  void find_streamable(const std::vector<plan::StepPlace>& places);
  void arrange();
  size_t aligned_bytes(uint32_t constant) const;
  // A block of those constants that `is_wanted` holds for, whose addresses it sets.
  Result<DeviceMemory> upload(const std::vector<bool>& is_wanted, std::vector<const std::byte*>& addresses) const;

  const plan::Plan& plan_;
  std::shared_ptr<Device> device_;
  DeviceMemory host_;                              // pinned: all weights, as in the plan
  DeviceMemory fixed_;                             // on the device
  std::vector<const std::byte*> fixed_addresses_;  // by constant; null = it may be copied
  std::vector<bool> streamable_;                   // by constant
  size_t streamable_bytes_ = 0;

  mutable std::mutex mutex_;
  size_t budget_ = 0;
  std::vector<bool> stays_;  // by constant: the budget has room for it
  std::vector<StreamingStep> steps_;
  size_t buffer_bytes_ = 0;
  std::shared_ptr<const Placement> placement_;  // null until a context is made
};

}  // namespace lathe
