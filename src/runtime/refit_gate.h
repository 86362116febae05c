// SPDX-License-Identifier: Apache-2.0
// Keeps runs and refits of an engine apart: runs go side by side, a refit waits for those that have begun, and those
// that come meanwhile wait for the refit. Refits come one after the other. Thread-safe.
#pragma once

#include <condition_variable>
#include <mutex>

namespace lathe {

class RefitGate {
 public:
  // Where a run or a refit holds the gate.
  class Pass {
   public:
    Pass() = default;
    Pass(Pass&& other) noexcept { std::swap(gate_, other.gate_), std::swap(is_run_, other.is_run_); }
    Pass& operator=(Pass&& other) noexcept {
      std::swap(gate_, other.gate_);
      std::swap(is_run_, other.is_run_);
      return *this;
    }
    ~Pass() {
      if (gate_) gate_->leave(is_run_);
    }

   private:
    friend class RefitGate;
    Pass(RefitGate* gate, bool is_run) : gate_(gate), is_run_(is_run) {}
    RefitGate* gate_ = nullptr;
    bool is_run_ = true;
  };

  Pass enter_run() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !refitting_; });
    ++runs_;
    return Pass(this, true);
  }
  Pass enter_refit() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !refitting_; });
    refitting_ = true;
    changed_.wait(lock, [&] { return runs_ == 0; });
    return Pass(this, false);
  }

 private:
  void leave(bool is_run) {
    {
      const std::lock_guard lock(mutex_);
      is_run ? void(--runs_) : void(refitting_ = false);
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int runs_ = 0;
  bool refitting_ = false;
};

}  // namespace lathe
