// SPDX-License-Identifier: Apache-2.0
// BuilderFlag::kMONITOR_MEMORY: what memory the process holds in each phase of a build, and this library of GPUs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"

namespace lathe::api {

class MemoryMonitor {
 public:
  struct Phase {
    std::string name;
    size_t resident = 0;                 // bytes when it began
    size_t peak = 0;                     // most bytes so far
    size_t device = 0, device_peak = 0;  // the same of GPUs' memory
  };

  explicit MemoryMonitor(Log& log) : log_(log) {}
  // Reads the memory and logs it when `phase` is another than at the last call.
  void enter(std::string_view phase);
  const std::vector<Phase>& phases() const { return phases_; }

 private:
  Log& log_;
  std::vector<Phase> phases_;
};

// What was freed goes back to the system. Threads that work on large tensors leave tens of megabytes in the allocator.
void return_free_memory();

}  // namespace lathe::api
