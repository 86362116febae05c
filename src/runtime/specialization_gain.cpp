// SPDX-License-Identifier: Apache-2.0
#include "runtime/specialization_gain.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "base/divide.h"
#include "runtime/shape_binding.h"
#include "runtime/tensor_copy.h"

namespace lathe {
namespace {

constexpr int kRepeats = 5, kRounds = 6;  // runs may be at work beside them: the least time of many counts
constexpr double kMostSeconds = 0.1;      // for all of it: GPUs take less, but a stand-in for one takes minutes
constexpr int kRunsAtOnce = 4;            // so that what events take counts for little
constexpr size_t kAlignment = 256;
constexpr size_t kZeros = size_t{1} << 20;  // at the start of the memory, from where the device copies them

// A step's operands and workspace, each in memory of its own, which holds zeros and is kept from trial to trial: runs
// wait for a driver that takes memory or gives it back.
class TrialOperands {
 public:
  TrialOperands(const plan::Plan& plan, const plan::Step& step, std::span<const int64_t> symbols)
      : plan_(plan), ids_(step.inputs), inputs_(ids_.size()), symbols_(symbols) {
    ids_.insert(ids_.end(), step.outputs.begin(), step.outputs.end());
    args_.resize(ids_.size());
  }
  Operands get() const {
    const std::span<const TensorArg> all = args_;
    return {all.first(inputs_), all.subspan(inputs_), symbols_};
  }
  std::byte* workspace() const { return workspace_; }

  Result<> resolve() {
    for (size_t i = 0; i < ids_.size(); ++i) {
      if (ids_[i] == plan::kNoTensor) continue;
      LATHE_ASSIGN(args_[i], tensor_arg(plan_.tensors[ids_[i]], symbols_));
    }
    return {};
  }
  Result<> place(size_t workspace, Device& device, Queue& queue, DeviceMemory& memory) {
    std::vector<size_t> places(ids_.size());
    size_t end = round_up(workspace, kAlignment);
    for (size_t i = 0; i < ids_.size(); ++i) {
      if (ids_[i] == plan::kNoTensor) continue;
      const Line line = line_of(args_[i]);
      const DType type = line.elements.dtype;
      places[i] = end + static_cast<size_t>(bytes_of(type, line.first).value_or(0));
      end = round_up(end + static_cast<size_t>(bytes_of(type, line.elements.dims[0]).value_or(0)), kAlignment);
    }
    if (end > SpecializationGain::kMostBytes)
      return fail(ErrorCode::out_of_memory, "a step with {} bytes of operands is not timed", end);
    if (memory.size() < kZeros + end) {
      memory = {};
      LATHE_ASSIGN(DeviceMemory taken, device.allocate(kZeros + std::bit_ceil(end)));
      const std::vector<std::byte> zeros(kZeros);
      LATHE_TRY(device.upload(taken.data(), zeros.data(), kZeros, queue));
      memory = std::move(taken);
    }
    workspace_ = memory.data() + kZeros;
    for (size_t i = 0; i < end; i += kZeros)
      LATHE_TRY(device.copy({.to = workspace_ + i, .from = memory.data(), .width = std::min(kZeros, end - i)}, queue));
    for (size_t i = 0; i < ids_.size(); ++i)
      if (ids_[i] != plan::kNoTensor) args_[i].data = workspace_ + places[i];
    return {};
  }

 private:
  const plan::Plan& plan_;
  std::vector<plan::TensorId> ids_;  // inputs, then outputs
  std::vector<TensorArg> args_;
  const size_t inputs_;
  std::span<const int64_t> symbols_;
  std::byte* workspace_ = nullptr;
};

}  // namespace

// Where nothing is timed, all is decided.
SpecializationGain::SpecializationGain(const plan::Plan& plan, Device& device, OpenKernel open)
    : plan_(plan), device_(device), open_(std::move(open)), modules_(plan.codes.size()) {
  for (Verdict& verdict : modules_)
    if (!open_) verdict = kGains;
}

bool SpecializationGain::may_gain(uint32_t module) const {
  const std::lock_guard lock(mutex_);
  return runs_.may_gain() && modules_[module].may_gain();
}

bool SpecializationGain::may_any_gain() const {
  const std::lock_guard lock(mutex_);
  return runs_.may_gain();
}

bool SpecializationGain::is_decided(uint32_t module) const {
  const std::lock_guard lock(mutex_);
  return modules_[module].is_decided();
}

Result<SpecializationGain::Times> SpecializationGain::measure(size_t step, const Kernel& kernel,
                                                              std::span<const uint32_t> modules,
                                                              std::span<const int64_t> symbols) {
  Result<Times> times = time(step, kernel, symbols);
  const std::lock_guard lock(mutex_);
  for (const uint32_t module : modules) times ? modules_[module].add(*times, kLeast) : void(modules_[module] = kGains);
  return times;
}

void SpecializationGain::note_run(const Times& times) {
  DeviceMemory memory;  // of trials, if this was the last: it goes without the locks
  const std::scoped_lock lock(timing_, mutex_);
  runs_.add(times, kLeastOfRuns);
  if (runs_.is_decided()) memory = std::move(memory_);
}

Result<SpecializationGain::Times> SpecializationGain::time(size_t step, const Kernel& kernel,
                                                           std::span<const int64_t> symbols) {
  const std::lock_guard lock(timing_);
  if (!queue_) {
    LATHE_ASSIGN(queue_, device_.make_queue());
  }
  LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(*queue_));
  const Kernel* const kernels[] = {open_(step), &kernel};
  LATHE_CHECK(kernels[0]);
  TrialOperands trial(plan_, plan_.steps[step], symbols);
  LATHE_TRY(trial.resolve());
  size_t workspace = 0;
  for (const Kernel* each : kernels) {
    LATHE_ASSIGN(const size_t bytes, each->prepare(trial.get(), device_.threads()));
    workspace = std::max(workspace, bytes);
  }
  LATHE_TRY(trial.place(workspace, device_, *queue_, memory_));
  double least[2] = {};
  const auto time_both = [&](int runs, int repeats) -> Result<> {
    for (const size_t i : {0, 1}) {
      const auto work = [&](Queue& queue) -> Result<> {
        for (int k = 0; k < runs; ++k) LATHE_TRY(kernels[i]->enqueue(trial.get(), trial.workspace(), queue));
        return {};
      };
      LATHE_ASSIGN(const std::vector<double> times, device_.time(*queue_, work, repeats));
      for (const double each : times) least[i] = least[i] > 0 ? std::min(least[i], each / runs) : each / runs;
    }
    return {};
  };
  LATHE_TRY(time_both(1, 1));  // what is done once is done now
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  LATHE_TRY(time_both(1, 1));
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (seconds * kRounds * kRepeats * kRunsAtOnce <= kMostSeconds) {
    std::ranges::fill(least, 0);
    for (int round = 0; round < kRounds; ++round) LATHE_TRY(time_both(kRunsAtOnce, kRepeats));
  }
  LATHE_TRY(device_.wait(*queue_));  // before the memory has other operands
  return Times{least[0], least[1]};
}

}  // namespace lathe
