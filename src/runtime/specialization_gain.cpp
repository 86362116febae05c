// SPDX-License-Identifier: Apache-2.0
#include "runtime/specialization_gain.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include "base/divide.h"
#include "runtime/shape_binding.h"
#include "runtime/tensor_copy.h"

namespace lathe {
namespace {

constexpr int kRounds = 6, kRepeats = 5;  // runs may be at work beside them: the least time of many counts
constexpr double kMostSeconds = 0.1;      // for all of it, else one time decides: a stand-in for a GPU takes minutes
constexpr int kRunsAtOnce = 4;            // what events take counts for little then, and few pieces meet a run
constexpr size_t kAlignment = 256;
constexpr size_t kZeros = size_t{1} << 20;  // at the start of the memory, from where the device copies them

// A step's operands and workspace, each in memory of its own, which holds zeros.
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
    if (memory.size() == 0) {  // all at once: a run that waits for a driver to take some waits a millisecond
      LATHE_ASSIGN(DeviceMemory taken, device.allocate(kZeros + SpecializationGain::kMostBytes));
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
    : plan_(plan), device_(device), open_(std::move(open)), verdicts_(plan.codes.size() + 1) {
  if (!open_) verdicts_.back() = {kMajority, kMajority};
}

bool SpecializationGain::is_decided() const {
  const std::lock_guard lock(mutex_);
  return verdicts_.back().is_majority();
}

bool SpecializationGain::may_gain(uint32_t module) const {
  const std::lock_guard lock(mutex_);
  return !verdicts_.back().is_majority() || (verdicts_.back().may_gain() && verdicts_[module].may_gain());
}

bool SpecializationGain::may_any_gain() const {
  const std::lock_guard lock(mutex_);
  return !verdicts_.back().is_majority() || verdicts_.back().may_gain();
}

std::vector<std::byte> SpecializationGain::verdicts() const {
  const std::lock_guard lock(mutex_);
  if (!verdicts_.back().is_majority()) return {};
  const auto bytes = std::as_bytes(std::span(verdicts_));
  return {bytes.begin(), bytes.end()};
}

void SpecializationGain::take(std::span<const std::byte> verdicts) {
  const std::lock_guard lock(mutex_);
  if (verdicts.size() != verdicts_.size() * sizeof(Verdict) || verdicts_.back().is_majority()) return;
  std::vector<Verdict> taken(verdicts_.size());
  std::memcpy(taken.data(), verdicts.data(), verdicts.size());
  if (taken.back().is_majority() && std::ranges::all_of(taken, &Verdict::is_valid)) verdicts_ = std::move(taken);
}

Result<SpecializationGain::Times> SpecializationGain::measure(size_t step, const Kernel& kernel,
                                                              std::span<const uint32_t> modules,
                                                              std::span<const int64_t> symbols,
                                                              const GiveTurn& between) {
  Result<Times> times = time(step, kernel, symbols, between);
  const std::lock_guard lock(mutex_);
  if (verdicts_.back().is_majority()) return times;  // others' verdicts were taken meanwhile
  for (const uint32_t module : modules) verdicts_[module].add(!times || times->open >= kLeast * times->special);
  return times;
}

void SpecializationGain::note_run(const Times& times) {
  const std::lock_guard lock(mutex_);
  if (!verdicts_.back().is_majority()) verdicts_.back().add(times.open >= kLeastOfRuns * times.special);
}

Result<SpecializationGain::Times> SpecializationGain::time(size_t step, const Kernel& kernel,
                                                           std::span<const int64_t> symbols, const GiveTurn& between) {
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
  const auto run = [&](size_t i, Queue& queue) { return kernels[i]->enqueue(trial.get(), trial.workspace(), queue); };
  double seconds = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 4; ++i) {  // what is done once is done now, and a run of the application's may be in between
    LATHE_ASSIGN(const double each, seconds_of_both(run));
    seconds = std::min(seconds, each);
  }
  const bool takes_long = seconds * kRounds * kRepeats * kRunsAtOnce > kMostSeconds;
  LATHE_ASSIGN(const Times times, takes_long ? time_in_turns(run, 1, 1, 1, between)
                                             : time_in_turns(run, kRunsAtOnce, kRounds, kRepeats, between));
  LATHE_TRY(device_.wait(*queue_));  // before the memory has other operands
  return times;
}

Result<double> SpecializationGain::seconds_of_both(const RunKernel& run) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (const size_t i : {0, 1}) LATHE_TRY(run(i, *queue_));
  LATHE_TRY(device_.wait(*queue_));
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Runs wait while a driver makes a graph: there is one for each kernel, which all rounds replay. Between two of these
// they have the device to themselves, or a run that lasts long would have its time doubled.
Result<SpecializationGain::Times> SpecializationGain::time_in_turns(const RunKernel& run, int runs, int rounds,
                                                                    int repeats, const GiveTurn& between) {
  const auto work_of = [&](size_t i) {
    return [&run, i, runs](Queue& queue) -> Result<> {
      for (int k = 0; k < runs; ++k) LATHE_TRY(run(i, queue));
      return {};
    };
  };
  std::unique_ptr<CapturedGraph> graphs[2];
  for (const size_t i : {0, 1}) {
    between(TurnOf::driver);
    LATHE_ASSIGN(graphs[i], device_.capture(work_of(i)));
  }
  between(TurnOf::device);
  double least[2] = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  for (int round = 0; round < rounds; ++round) {
    for (const size_t i : {0, 1}) {
      LATHE_ASSIGN(const std::vector<double> times, graphs[i] ? device_.time_replays(*queue_, *graphs[i], repeats)
                                                              : device_.time(*queue_, work_of(i), repeats));
      least[i] = std::min(least[i], std::ranges::min(times) / runs);
    }
    between(TurnOf::device);
  }
  return Times{least[0], least[1]};
}

}  // namespace lathe
