// SPDX-License-Identifier: Apache-2.0
// The number of a loop's round, where its body wants it.
#pragma once

#include <vector>

#include "runtime/context_memory.h"

namespace lathe {

// Numbers lie in a table in the device's memory, so that the device need not wait for the host in each round, and a
// captured loop finds them at replay. One thread at a time, as the context that owns it.
class RoundNumbers {
 public:
  static constexpr int64_t kHeld = 4096;  // at a time: loops of so many rounds can be captured

  RoundNumbers(Device& device, ContextMemory& memory) : device_(device), memory_(memory) {}

  Result<> write(int64_t round, std::byte* to, Queue& queue);

 private:
  Result<> hold(int64_t first, Queue& queue);

  Device& device_;
  ContextMemory& memory_;
  DeviceMemory table_;
  int64_t first_ = -1;            // number at its start
  std::vector<int64_t> numbers_;  // what it holds
};

}  // namespace lathe
