// SPDX-License-Identifier: Apache-2.0
// Events, which order the work of different queues. Devices whose work goes on after enqueue() returns have them.
#pragma once

#include <memory>

#include "device/kernel.h"

namespace lathe {

// A point in the work of a queue, for which the host and other queues can wait. Before the first record() there is
// nothing to wait for. Not thread-safe; queues are those of the device that made it.
class Event {
 public:
  virtual ~Event() = default;
  // Moves the event behind what the queue was given so far. Called within a turn of the queue (QueueTurn); the queue is
  // not being captured.
  virtual Result<> record(Queue& queue) = 0;
  // Blocks the host until the work before the event is done; reports what failed in it.
  virtual Result<> wait() = 0;
  // Lets what the queue is given from now on begin when the work before the event is done. A queue that is being
  // captured cannot wait for it: the host does, before hold() returns.
  virtual Result<> hold(Queue& queue) = 0;
};

// Implemented, beside Device, by devices that have events.
class EventMaker {
 public:
  virtual Result<std::unique_ptr<Event>> make_event() = 0;

 protected:
  ~EventMaker() = default;
};

}  // namespace lathe
