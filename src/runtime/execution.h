// SPDX-License-Identifier: Apache-2.0
// The steps of a context, one after the other.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/forking_queue.h"
#include "runtime/block_execution.h"
#include "runtime/plugin_kernel.h"
#include "runtime/weight_stream.h"

namespace lathe {

// What may look on while a context runs. While `profiler`, `observer` or `waits_after_steps` is set, no graph is
// made or replayed, and the host waits for each step (`observer`: on a device that is not the host, for its results).
struct RunHooks {
  // Sees the time of each step each time that it runs; that of a block is what it takes besides its steps.
  std::function<void(const plan::Step& step, double milliseconds)> profiler;
  // Sees each result of each step, in the layout that the next steps read, before memory is used again.
  Observer observer;
  // Called with the queue of a device that is not the host once everything that reads inputs has been given to it, and
  // the block that it is in has ended.
  std::function<Result<>(Queue& queue)> inputs_read;
  Log* log = nullptr;                                // is told what becomes slower than it might be
  const std::vector<std::string>* ranges = nullptr;  // of a profiler's timeline, by step; null = there are none
  bool waits_after_steps = false;                    // so that a step's failure shows in that step
};

// What follows from sizes for each step. Addresses, and what depends on data, are those of the run in progress.
struct PreparedSteps {
  std::vector<StepOperands> operands;
  std::vector<size_t> scratch;      // bytes
  std::map<size_t, Error> refused;  // steps that cannot run under these sizes; branches may leave them out
  bool is_capturable = false;       // whether a captured graph can hold a run
};

// Gives the plan's steps to a queue: kernels to the device, the rest to the host. One thread at a time, as the context
// that owns it; all that it is made of outlives it.
class Execution {
 public:
  enum class Mode {
    immediate,  // the queue does what it is given
    capturing,  // nothing is run yet: whoever replays it tells of the inputs
  };

  // `weights`: null = nothing is copied.
  Execution(const Engine& engine, ShapeBinding& shapes, ContextMemory& memory, TensorStorage& storage,
            WeightStream* weights, const RunHooks& hooks);
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  // Makes the context's own clones of plugins: once, before anything else.
  Result<> attach_plugins();
  // From the next prepare() on: instead of the engine's. Null = none.
  void use(std::shared_ptr<const SpecializedKernels> kernels) { specialized_ = std::move(kernels); }
  const std::shared_ptr<const SpecializedKernels>& specialized() const { return specialized_; }
  // Dims and strides of operands, the kernels' consent and the scratch they want, once shapes are bound. Not of steps
  // that depend on data.
  Result<> prepare();
  // What prepare() has made, which stays as it is while others are made; and one of the same sizes and kernels again,
  // instead of prepare().
  const std::shared_ptr<PreparedSteps>& prepared() const { return now_; }
  void use(std::shared_ptr<PreparedSteps> prepared) { now_ = std::move(prepared); }
  bool is_capturable() const { return now_->is_capturable; }
  bool has_plugins() const { return !plugins_.empty(); }
  // Runs every step on a queue within a turn of it.
  Result<> run(Queue& queue, Mode mode);
  void release_temporaries() { blocks_.release_temporaries(); }

 private:
  const Kernel* kernel(size_t step) const;
  Result<> check_conditional(size_t step) const;
  // Bytes of scratch that the step's kernel needs.
  Result<size_t> prepare_step(size_t step);
  Result<> run_steps(size_t first, size_t end, Queue& queue);
  Result<> run_section(const plan::ParallelSection& section, ForkingQueue& queue, Queue& main);
  Result<> run_watched(size_t step, Queue& queue);
  Result<> run_step(size_t step, Queue& queue);
  Result<> prepare_data_dependent(size_t step, Queue& queue);

  const Engine& engine_;
  const plan::Plan& plan_;
  ShapeBinding& shapes_;
  ContextMemory& memory_;
  TensorStorage& storage_;
  WeightStream* weights_;
  const RunHooks& hooks_;
  HostEvaluation host_;
  BlockExecution blocks_;
  std::map<size_t, std::unique_ptr<PluginKernel>> plugins_;  // by step
  std::shared_ptr<const SpecializedKernels> specialized_;
  PreparedSteps none_;                  // as they are before prepare()
  std::shared_ptr<PreparedSteps> now_;  // never null
  size_t readers_end_ = 0;              // behind the last step that reads an input, and the blocks around it
  double reported_ms_ = 0;              // of this run, to the profiler
};

}  // namespace lathe
