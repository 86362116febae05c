// SPDX-License-Identifier: Apache-2.0
// The weights that a context copies to its device while it runs, each for the step that needs it.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "device/forking_queue.h"
#include "runtime/engine.h"
#include "runtime/streamed_weights.h"

namespace lathe {

// Two buffers take turns. The weights of a step are copied to one of them, on a queue beside the run's, as soon as the
// last step but one that had weights copied is done with it: while others compute. Runs, also those that are captured,
// call begin(), then before() and after() of each step outside of blocks in turn, then end(), also after failures. One
// thread at a time, as the context that owns it; the engine outlives it.
class WeightStream {
 public:
  // Null where the engine has all its weights on its device, and by the same placement for all contexts.
  static Result<std::unique_ptr<WeightStream>> create(const Engine& engine);

  // Where the constant lies on the device; of one that is copied, between before() and after() of a step that reads it.
  const std::byte* address(uint32_t constant) const { return addresses_[constant]; }

  Result<> begin(Queue& queue);
  Result<> before(size_t step, Queue& queue);
  Result<> after(size_t step, Queue& queue);
  Result<> end(Queue& queue);

 private:
  explicit WeightStream(const Engine& engine) : engine_(engine) {}
  bool is_next(size_t step) const { return next_ < placement_->steps.size() && placement_->steps[next_].step == step; }
  std::byte* buffer(size_t turn) const { return buffers_.data() + turn % 2 * placement_->buffer_bytes; }
  size_t number(size_t turn) const { return engine_.plan().auxiliary_streams() + 1 + turn % 2; }  // of the queue
  Result<> copy(size_t turn, Queue& queue);
  Result<> join(size_t turn, Queue& queue);

  const Engine& engine_;
  std::shared_ptr<const StreamedWeights::Placement> placement_;
  DeviceMemory buffers_;
  std::vector<const std::byte*> addresses_;  // by constant
  size_t next_ = 0;                          // of the placement's steps, in this run
  std::array<bool, 2> copying_{};            // by buffer: the run's queue has not waited for its copies yet
};

}  // namespace lathe
