// SPDX-License-Identifier: Apache-2.0
// The number of a loop's round, where its body wants it.
#pragma once

#include <array>
#include <vector>

#include "runtime/context_memory.h"

namespace lathe {

// Numbers lie in tables in the device's memory, so that the device need not wait for the host in each round. The first
// table stays as it is: captured loops find their numbers at replay. One thread at a time, as the context that owns it.
class RoundNumbers {
 public:
  static constexpr int64_t kHeld = 4096;  // by a table: loops of so many rounds can be captured

  RoundNumbers(Device& device, ContextMemory& memory) : device_(device), memory_(memory) {}

  Result<> write(int64_t round, std::byte* to, Queue& queue);

 private:
  struct Table {
    DeviceMemory memory;
    int64_t first = -1;  // number at its start
    std::vector<int64_t> numbers;
  };
  Result<> fill(Table& table, int64_t first, Queue& queue);

  Device& device_;
  ContextMemory& memory_;
  std::array<Table, 2> tables_;  // the first numbers, and others in turn
};

}  // namespace lathe
