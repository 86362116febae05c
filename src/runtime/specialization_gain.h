// SPDX-License-Identifier: Apache-2.0
// Whether kernels that know the sizes of runs are faster than those for open sizes: timed beside each other for the
// first sets of sizes.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "device/device.h"
#include "plan/plan.h"
#include "runtime/driver_turns.h"

namespace lathe {

// For a run as a whole, and by module of a plan's code, which other sizes share: kernels that are a tenth faster, but a
// tenth of the run, are not worth making it anew for each of its sizes. Thread-safe, but for trials: one thread at a
// time calls measure() and note_run(). The plan and the device outlive it.
class SpecializationGain {
 public:
  // The engine's kernel of a step of the plan.
  using OpenKernel = std::function<const Kernel*(size_t step)>;
  static constexpr uint32_t kMajority = 3;     // of five sets of sizes
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

  // When so many sets of sizes were faster as a whole, or so many were not, nothing more is timed.
  bool is_decided() const;
  // Until then all may; then those modules that gained in most of their trials, or had none, if runs gain.
  bool may_gain(uint32_t module) const;
  bool may_any_gain() const;
  // Times the kernel of a step, whose code is of these modules, beside the open one, on memory of its own that holds
  // zeros, with a queue of its own. A failure counts for the modules as a gain. `between` lets runs go
  // on, and is back when such work may begin.
  Result<Times> measure(size_t step, const Kernel& kernel, std::span<const uint32_t> modules,
                        std::span<const int64_t> symbols, const GiveTurn& between);
  // The steps of one set of sizes that could be timed; none = that counts as a gain.
  void note_run(const Times& times);

  // What has been found, for other processes that have this plan on such a device; none until runs are decided.
  std::vector<std::byte> verdicts() const;
  // Of verdicts(), in place of trials. Bytes that cannot be those of a plan with as many modules change nothing.
  void take(std::span<const std::byte> verdicts);

 private:
  struct Verdict {
    uint32_t trials = 0, gains = 0;
    bool is_majority() const { return gains >= kMajority || trials - gains >= kMajority; }
    bool is_valid() const { return gains <= trials; }
    bool may_gain() const { return trials == 0 || 2 * gains > trials; }
    void add(bool gains_now) { ++trials, gains += gains_now; }
  };
  using RunKernel = std::function<Result<>(size_t kernel, Queue& queue)>;  // the open one, or the other
  Result<Times> time(size_t step, const Kernel& kernel, std::span<const int64_t> symbols, const GiveTurn& between);
  Result<double> seconds_of_both(const RunKernel& run);
  Result<Times> time_in_turns(const RunKernel& run, int runs, int rounds, int repeats, const GiveTurn& between);

  const plan::Plan& plan_;
  Device& device_;
  const OpenKernel open_;
  std::unique_ptr<Queue> queue_;
  // Of all trials. It stays as long as the engine: runs wait for a driver that takes memory or gives it back.
  DeviceMemory memory_;
  mutable std::mutex mutex_;       // of what follows
  std::vector<Verdict> verdicts_;  // of modules, by number, then of runs
};

}  // namespace lathe
