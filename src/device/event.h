// SPDX-License-Identifier: Apache-2.0
// Points in the work of queues. Devices whose work goes on after enqueue() have them.
#pragma once

#include <memory>

#include "device/kernel.h"

namespace lathe {

// A point in the work of a queue, for which the host and other queues can wait.
class Event {
 public:
  virtual ~Event() = default;
  // Moves it behind what the queue was given so far. Within a turn of the queue, which is not captured.
  virtual Result<> record(Queue& queue) = 0;
  virtual Result<> wait() = 0;              // on the host, until that work is done; reports what failed in it
  virtual Result<> hold(Queue& queue) = 0;  // what the queue is given from now on begins when that work is done
};

// What a Device with events is, too.
class EventMaker {
 public:
  virtual Result<std::unique_ptr<Event>> make_event() = 0;

 protected:
  ~EventMaker() = default;
};

}  // namespace lathe
