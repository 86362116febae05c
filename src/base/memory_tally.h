// SPDX-License-Identifier: Apache-2.0
// How many bytes this library's allocators hold, in the whole process: for the log, and never to decide by.
#pragma once

#include <atomic>
#include <cstddef>

namespace lathe {

// Thread-safe.
class MemoryTally {
 public:
  void add(size_t bytes) {
    const size_t now = live_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    size_t peak = peak_.load(std::memory_order_relaxed);
    while (peak < now && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
  }
  void remove(size_t bytes) { live_.fetch_sub(bytes, std::memory_order_relaxed); }
  size_t live() const { return live_.load(std::memory_order_relaxed); }
  size_t peak() const { return peak_.load(std::memory_order_relaxed); }  // the most since restart()
  void restart() { peak_.store(live(), std::memory_order_relaxed); }

 private:
  std::atomic<size_t> live_{0}, peak_{0};
};

// Of the host: large tensors, plans, and what contexts work in where the device is a processor.
inline MemoryTally& host_tally() {
  static MemoryTally tally;
  return tally;
}

// Of all other devices.
inline MemoryTally& device_tally() {
  static MemoryTally tally;
  return tally;
}

}  // namespace lathe
