// SPDX-License-Identifier: Apache-2.0
// Memory that a driver takes to make captured graphs ready, some megabytes at a time, for which runs wait. It keeps the
// memory when graphs go; so it can be had before the first run.
#pragma once

#include <functional>

#include "device/kernel.h"

namespace lathe {

// Implemented, beside Kernel, by kernels that captured graphs hold.
class RehearsedKernel {
 public:
  // Gives a queue that is being captured the launches of enqueue(), of one block and with zeros for operands. They must
  // never run.
  virtual Result<> rehearse(Queue& queue) const = 0;

 protected:
  ~RehearsedKernel() = default;
};

// Implemented, beside Device, by devices whose driver keeps the memory of destroyed graphs.
class GraphReserver {
 public:
  // Takes the memory that so many graphs of `work` need, which the queue that it is given captures.
  virtual Result<> reserve_graphs(const std::function<Result<>(Queue&)>& work, size_t graphs) = 0;

 protected:
  ~GraphReserver() = default;
};

}  // namespace lathe
