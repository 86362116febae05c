// SPDX-License-Identifier: Apache-2.0
// The work that a context has given to queues, and which may go on when the call that gave it has returned.
#pragma once

#include <memory>

#include "device/device.h"
#include "device/event.h"

namespace lathe {

// Runs of one context follow each other, on whatever queues they are, because they use the same memory: a run begins by
// following the last one, and memory goes only once nothing is at work. One thread at a time, as the context that owns
// it. The device and each queue that was given work outlive it; whoever owns both waits before the queues go.
class PendingWork {
 public:
  static Result<PendingWork> create(Device& device);

  // Until nothing that was given uses the context's memory.
  Result<> wait();
  // What `queue` is given from now on begins when the last run is done.
  Result<> follow(Queue& queue);
  // A run on `queue`, within a turn of it: begin(), the work, end(). end() is due also behind work that was cut short.
  Result<> begin(Queue& queue);
  Result<> end(Queue& queue);
  // Whether the run's queue is being captured: such work is not at work yet, it is the application that runs it.
  bool is_captured() const { return is_captured_; }

  // Allocates a block anew once nothing is at work; its content is lost. The old block goes first, for there may be no
  // room for both; where there is none for the new one, one of the old size takes its place. `from` is the device, or
  // the same with memory from elsewhere.
  Result<> replace(DeviceMemory& block, size_t bytes) { return replace(block, bytes, *device_); }
  Result<> replace(DeviceMemory& block, size_t bytes, Device& from);

 private:
  explicit PendingWork(Device& device) : device_(&device) {}

  Device* device_;
  std::unique_ptr<Event> done_;  // behind the last run; null where the device has no events
  Queue* last_queue_ = nullptr;  // of the last run, which may still be at work; null = it is done
  Queue* unmarked_ = nullptr;    // was given work that done_ is not behind yet: a run goes on, or was cut short
  bool is_captured_ = false;     // the last run's queue
};

}  // namespace lathe
