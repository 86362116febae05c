// SPDX-License-Identifier: Apache-2.0
// Keeps runs and refits of an engine apart: runs go side by side, a refit waits for those that have begun, and those
// that come meanwhile wait for the refit. Refits come one after the other. Thread-safe.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace lathe {

class RefitGate {
 public:
  // What a run or a refit holds while it lasts.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept { swap(other); }
    Lease& operator=(Lease&& other) noexcept {
      swap(other);
      return *this;
    }
    ~Lease() {
      if (gate_) gate_->leave(runner_);
    }

   private:
    friend class RefitGate;
    Lease(RefitGate* gate, std::thread::id runner) : gate_(gate), runner_(runner) {}
    void swap(Lease& other) noexcept {
      std::swap(gate_, other.gate_);
      std::swap(runner_, other.runner_);
    }
    RefitGate* gate_ = nullptr;
    std::thread::id runner_;  // none = a refit
  };

  // A thread whose run has begun may begin another one inside it, from an output allocator, though a refit waits: the
  // refit waits for that thread.
  Lease enter_run() {
    std::unique_lock lock(mutex_);
    const std::thread::id self = std::this_thread::get_id();
    changed_.wait(lock, [&] { return !refitting_ || std::find(runs_.begin(), runs_.end(), self) != runs_.end(); });
    runs_.push_back(self);
    return {this, self};
  }
  Lease enter_refit() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !refitting_; });
    refitting_ = true;
    changed_.wait(lock, [&] { return runs_.empty(); });
    return {this, std::thread::id()};
  }

 private:
  void leave(std::thread::id runner) {
    {
      const std::lock_guard lock(mutex_);
      if (runner == std::thread::id())
        refitting_ = false;
      else
        runs_.erase(std::find(runs_.begin(), runs_.end(), runner));
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::thread::id> runs_;  // their threads
  bool refitting_ = false;
};

}  // namespace lathe
