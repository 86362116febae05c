// SPDX-License-Identifier: Apache-2.0
#include "runtime/pending_work.h"

namespace lathe {

Result<PendingWork> PendingWork::create(Device& device) {
  PendingWork work(device);
  if (auto* const maker = dynamic_cast<EventMaker*>(&device)) {
    LATHE_ASSIGN(work.done_, maker->make_event());
  }
  return work;
}

Result<> PendingWork::wait() {
  if (unmarked_) return device_->wait(*unmarked_);
  if (!last_queue_) return {};
  LATHE_TRY(done_ ? done_->wait() : device_->wait(*last_queue_));
  last_queue_ = nullptr;
  return {};
}

// Streams do not know of each other: without this, a run on another one would overwrite what the last one still uses.
Result<> PendingWork::follow(Queue& queue) {
  if (!last_queue_) return {};
  if (done_ && !unmarked_) {
    LATHE_TRY(done_->hold(queue));
    last_queue_ = &queue;
    return {};
  }
  LATHE_TRY(wait());
  last_queue_ = unmarked_ = nullptr;
  return {};
}

Result<> PendingWork::begin(Queue& queue) {
  if (last_queue_ != &queue) LATHE_TRY(follow(queue));
  is_captured_ = queue.is_captured();
  last_queue_ = unmarked_ = &queue;
  return {};
}

Result<> PendingWork::end(Queue& queue) {
  if (done_ && !is_captured_) LATHE_TRY(done_->record(queue));
  unmarked_ = nullptr;
  return {};
}

Result<> PendingWork::replace(DeviceMemory& block, size_t bytes, Device& from) {
  LATHE_TRY(wait());
  const size_t former = block.size();
  block = DeviceMemory();
  Result<DeviceMemory> made = from.allocate(bytes);
  if (made) {
    block = *std::move(made);
    return {};
  }
  if (Result<DeviceMemory> again = from.allocate(former)) block = *std::move(again);
  return fail(std::move(made).error());
}

}  // namespace lathe
