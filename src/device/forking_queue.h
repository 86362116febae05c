// SPDX-License-Identifier: Apache-2.0
// Queues beside a queue, for work that does not depend on each other.
#pragma once

#include <span>

#include "device/kernel.h"

namespace lathe {

// Implemented, beside Queue, by queues of devices that do several things at a time. Auxiliary queues have numbers from
// 1 on, and are made when they are first wanted.
class ForkingQueue {
 public:
  // A queue whose work begins when what this one was given so far is done. Both may be captured, in one graph.
  virtual Result<Queue*> fork(size_t number) = 0;
  // What this queue is given from now on begins when the work of that auxiliary one, which fork() has given, is done.
  virtual Result<> join(size_t number) = 0;
  // Streams of the application's that the first auxiliary queues are to be on, which must outlive it.
  virtual void set_auxiliary(std::span<void* const> streams) = 0;

 protected:
  ~ForkingQueue() = default;
};

}  // namespace lathe
