// SPDX-License-Identifier: Apache-2.0
// Whether kernels that know the sizes of runs are faster than those for open sizes: timed beside each other for the
// first sets of sizes.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "device/device.h"
#include "plan/plan.h"

namespace lathe {

// By module of a plan's code, which other sizes share, and for a run as a whole: kernels that are a tenth faster, but a
// tenth of the run, are not worth making it anew for each of its sizes. Thread-safe. The plan and the device outlive
// it.
class SpecializationGain {
 public:
  // The engine's kernel of a step of the plan.
  using OpenKernel = std::function<const Kernel*(size_t step)>;
  static constexpr int kTrials = 5;            // sets of sizes, of which most must be faster
  static constexpr double kLeast = 1.05;       // times as fast: less is noise, and not worth compiling
  static constexpr double kLeastOfRuns = 1.1;  // of all steps: trials find operands in caches, and gain more than runs
  static constexpr size_t kMostBytes = size_t{64} << 20;  // of a step's operands; larger ones are not timed

  // `open`: null = nothing is timed, and all modules may gain.
  SpecializationGain(const plan::Plan& plan, Device& device, OpenKernel open);

  struct Times {
    double open = 0, special = 0;  // microseconds
    Times& operator+=(const Times& other) {
      open += other.open, special += other.special;
      return *this;
    }
  };

  // False where it has been found not to be faster.
  bool may_gain(uint32_t module) const;
  bool may_any_gain() const;
  bool is_decided(uint32_t module) const;
  // Times the kernel of a step, whose code is of these modules, beside the open one, on memory of its own that holds
  // zeros, with a queue of its own. Where that fails, the modules may gain.
  Result<Times> measure(size_t step, const Kernel& kernel, std::span<const uint32_t> modules,
                        std::span<const int64_t> symbols);
  // All steps that can be specialised, of one set of sizes.
  void note_run(const Times& times);

 private:
  struct Verdict {
    int trials = 0, gains = 0;
    bool is_decided() const { return trials >= kTrials; }
    bool may_gain() const { return !is_decided() || 2 * gains > kTrials; }
    void add(const Times& times, double least) {
      if (is_decided()) return;
      ++trials;
      gains += times.open >= least * times.special;
    }
  };
  static constexpr Verdict kGains{kTrials, kTrials};
  Result<Times> time(size_t step, const Kernel& kernel, std::span<const int64_t> symbols);

  const plan::Plan& plan_;
  Device& device_;
  const OpenKernel open_;
  std::mutex timing_;  // one step at a time: the queue is used by one thread, and times are of steps alone
  std::unique_ptr<Queue> queue_;
  DeviceMemory memory_;       // of trials, until runs are decided
  mutable std::mutex mutex_;  // of what follows
  std::vector<Verdict> modules_;
  Verdict runs_;
};

}  // namespace lathe
