// SPDX-License-Identifier: Apache-2.0
// Who has a driver load code or prepare graphs in the background takes turns with all who do: runs wait for the driver
// meanwhile, and are let through between two turns. Work of the driver is best begun when a run has just been launched:
// the driver is free again about when the device is, and the next run waits for it least. A run of 0.4 ms that met a
// load of 0.6 ms took 1 to 1.6 ms. Work of the device is begun at any time: behind a launch it would always meet the
// run.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <new>

namespace lathe {

inline constexpr std::chrono::milliseconds kBetweenTurns(2);

// Gives the turn away, and takes it again for such work.
enum class TurnOf : uint8_t { driver, device };
using GiveTurn = std::function<void(TurnOf)>;

// Of the process, as the driver's locks are.
inline std::mutex& driver_turns() {
  static std::mutex turns;
  return turns;
}

// Of runs of all engines of the process. Thread-safe.
class RunLaunches {
 public:
  static RunLaunches& of_process() {
    // Engines may outlive what is destroyed when a program ends, and the library may be unloaded: it is no object that
    // is destroyed, and takes no memory.
    alignas(RunLaunches) static std::byte memory[sizeof(RunLaunches)];
    static RunLaunches& launches = *new (memory) RunLaunches;
    return launches;
  }
  // By who has launched a run, or knows that none comes. Costs nothing unless somebody waits.
  void note() {
    if (waiting_.load(std::memory_order_relaxed) == 0) return;
    {
      const std::lock_guard lock(mutex_);
      ++count_;
    }
    noted_.notify_all();
  }
  // For the next one, or so long where none comes.
  void wait(std::chrono::milliseconds most) {
    std::unique_lock lock(mutex_);
    ++waiting_;
    noted_.wait_for(lock, most, [this, before = count_] { return count_ != before; });
    --waiting_;
  }

 private:
  std::atomic<int> waiting_ = 0;
  std::mutex mutex_;
  std::condition_variable noted_;
  uint64_t count_ = 0;
};

}  // namespace lathe
