// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <thread>

#include "cli/failure.h"
#include "trtexec/inference.h"

namespace lathe::trtexec {
namespace {

using cli::Failure;

void enqueue_on(nvinfer1::IExecutionContext& context, cudaStream_t stream) {
  if (context.enqueueV3(stream)) return;
  const std::string reason = lathe::lastError();
  throw Failure(reason.empty() ? "Error occurred during inference" : reason);
}

// The CPU: a query is done when it is enqueued, and reads and writes memory of the host in place.
class HostQueries final : public QueryStream {
 public:
  HostQueries(nvinfer1::IExecutionContext& context, const IoPlace& place, const Options& options,
              const ReferencePair& files, TrtexecLog& log, const std::function<void()>& shapes_are_set)
      : context_(context), bindings_(context, place, options, files, log) {
    shapes_are_set();
    bindings_.bind(context_);
  }

  size_t depth() const override { return 1; }
  std::unique_ptr<Timebase> begin() override { return std::make_unique<Timebase>(); }
  void delay(int milliseconds) override { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }
  void enqueue(const Timebase& base) override {
    times_.enqueue_start = times_.compute_start = times_.h2d_start = times_.h2d_end = base.milliseconds();
    enqueue_on(context_, nullptr);
    times_.enqueue_end = times_.compute_end = times_.d2h_start = times_.d2h_end = base.milliseconds();
  }
  QueryTimes finish(const Timebase&) override { return times_; }
  std::vector<cli::HostTensor> outputs() override { return bindings_.outputs(); }
  const IoBindings& bindings() const override { return bindings_; }

 private:
  nvinfer1::IExecutionContext& context_;
  IoBindings bindings_;
  QueryTimes times_;
};

// A GPU: copies and computation have streams of their own, so that the copies of one query run beside the computation
// of another. Two queries are under way at a time; where inputs and outputs are copied, each has memory of its own.
class GpuQueries final : public QueryStream {
 public:
  GpuQueries(nvinfer1::IExecutionContext& context, const IoPlace& place, const QuerySettings& settings,
             const Options& options, const ReferencePair& files, TrtexecLog& log,
             const std::function<void()>& shapes_are_set)
      : context_(context),
        calls_(place.calls()),
        settings_(settings),
        h2d_(calls_),
        compute_(calls_),
        d2h_(calls_),
        copies_(settings.transfers && place.has_copies()) {
    const size_t memories = copies_ && !settings.expose_dma ? kDepth : 1;
    for (size_t i = 0; i < memories; ++i) {
      const LogPause pause(log, i > 0);
      memories_.push_back(std::make_unique<IoBindings>(context, place, options, files, log));
    }
    for (const auto& memory : memories_) memory->copy_inputs(compute_);
    for (size_t i = 0; i < depth(); ++i) slots_[i] = std::make_unique<Slot>(calls_, settings);
    compute_.synchronize();
    shapes_are_set();
    capture(log);
  }

  size_t depth() const override { return settings_.expose_dma ? 1 : kDepth; }
  std::unique_ptr<Timebase> begin() override;
  void delay(int milliseconds) override;
  void enqueue(const Timebase& base) override;
  QueryTimes finish(const Timebase& base) override;
  std::vector<cli::HostTensor> outputs() override;
  const IoBindings& bindings() const override { return *memories_.front(); }

 private:
  static constexpr size_t kDepth = 2;

  struct Slot {
    Slot(const CudaCalls& calls, const QuerySettings& settings)
        : h2d_start(calls, waiting(settings)),
          h2d_end(calls, waiting(settings)),
          compute_start(calls, waiting(settings)),
          compute_end(calls, waiting(settings)),
          d2h_start(calls, waiting(settings)),
          d2h_end(calls, waiting(settings)) {}
    static GpuWaiting waiting(const QuerySettings& settings) {
      return settings.spin_wait ? GpuWaiting::spins : GpuWaiting::sleeps;
    }
    GpuEvent h2d_start, h2d_end, compute_start, compute_end, d2h_start, d2h_end;
    double enqueue_start = 0, enqueue_end = 0;
  };

  IoBindings& memory_of(size_t slot) { return *memories_[slot % memories_.size()]; }
  void capture(TrtexecLog& log);
  void compute(size_t slot);

  nvinfer1::IExecutionContext& context_;
  const CudaCalls& calls_;
  QuerySettings settings_;
  GpuStream h2d_, compute_, d2h_;
  bool copies_;
  std::vector<std::unique_ptr<IoBindings>> memories_;
  std::vector<std::unique_ptr<GpuGraph>> graphs_;  // one for each memory; none where nothing is captured
  std::array<std::unique_ptr<Slot>, kDepth> slots_;
  size_t next_ = 0, oldest_ = 0;  // counted on
};

// Once without, because the first run of a context may do what cannot be captured.
void GpuQueries::capture(TrtexecLog& log) {
  if (!settings_.cuda_graph) return;
  if (memory_of(0).has_growing_outputs()) {
    log.warn("Sizes of outputs depend on the data: the inference is not captured in a CUDA graph.");
    return;
  }
  for (const auto& memory : memories_) {
    memory->bind(context_);
    enqueue_on(context_, compute_.cuda());
    compute_.synchronize();
    auto graph = std::make_unique<GpuGraph>(calls_);
    bool captured = graph->begin(compute_);
    if (captured) {
      const bool enqueued = context_.enqueueV3(compute_.cuda());
      captured = graph->end(compute_) && enqueued;
    }
    if (!captured) {
      log.warn("The CUDA graph capture on the stream has failed. Inference runs without a CUDA graph.");
      graphs_.clear();
      return;
    }
    graphs_.push_back(std::move(graph));
  }
}

std::unique_ptr<Timebase> GpuQueries::begin() {
  auto base = std::make_unique<Timebase>();
  base->device = std::make_unique<GpuEvent>(calls_, GpuWaiting::sleeps);
  compute_.synchronize();
  base->device->record(compute_);
  base->host = Timebase::Clock::now();
  return base;
}

void GpuQueries::delay(int milliseconds) {
  if (!calls_.launch_host) return std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  const auto sleep = [](void* user) {
    std::this_thread::sleep_for(std::chrono::milliseconds(reinterpret_cast<intptr_t>(user)));
  };
  void* const user = reinterpret_cast<void*>(static_cast<intptr_t>(milliseconds));
  check_cuda(calls_, calls_.launch_host(compute_.get(), sleep, user), "delaying the computation");
}

void GpuQueries::compute(size_t slot) {
  if (!graphs_.empty()) {
    if (!graphs_[slot % graphs_.size()]->launch(compute_)) throw Failure("launching the CUDA graph has failed");
    return;
  }
  memory_of(slot).bind(context_);
  enqueue_on(context_, compute_.cuda());
}

void GpuQueries::enqueue(const Timebase& base) {
  const size_t index = next_++ % depth();
  Slot& slot = *slots_[index];
  slot.enqueue_start = base.milliseconds();
  if (copies_) {
    slot.h2d_start.record(h2d_);
    memory_of(index).copy_inputs(h2d_);
    slot.h2d_end.record(h2d_);
    compute_.wait_for(slot.h2d_end.get());
  }
  slot.compute_start.record(compute_);
  compute(index);
  slot.compute_end.record(compute_);
  if (copies_) {
    d2h_.wait_for(slot.compute_end.get());
    slot.d2h_start.record(d2h_);
    memory_of(index).copy_outputs(d2h_);
    slot.d2h_end.record(d2h_);
  }
  slot.enqueue_end = base.milliseconds();
}

QueryTimes GpuQueries::finish(const Timebase& base) {
  const Slot& slot = *slots_[oldest_++ % depth()];
  (copies_ ? slot.d2h_end : slot.compute_end).wait();
  const auto at = [&](const GpuEvent& event) { return static_cast<double>(event.milliseconds_since(*base.device)); };
  QueryTimes times;
  times.enqueue_start = slot.enqueue_start;
  times.enqueue_end = slot.enqueue_end;
  times.compute_start = at(slot.compute_start);
  times.compute_end = at(slot.compute_end);
  times.h2d_start = copies_ ? at(slot.h2d_start) : times.compute_start;
  times.h2d_end = copies_ ? at(slot.h2d_end) : times.compute_start;
  times.d2h_start = copies_ ? at(slot.d2h_start) : times.compute_end;
  times.d2h_end = copies_ ? at(slot.d2h_end) : times.compute_end;
  return times;
}

std::vector<cli::HostTensor> GpuQueries::outputs() {
  IoBindings& last = memory_of(next_ == 0 ? 0 : (next_ - 1) % depth());
  compute_.synchronize();
  last.copy_outputs(d2h_);
  d2h_.synchronize();
  return last.outputs();
}

}  // namespace

std::unique_ptr<QueryStream> make_query_stream(nvinfer1::IExecutionContext& context, const IoPlace& place,
                                               const QuerySettings& settings, const Options& options,
                                               const ReferencePair& files, TrtexecLog& log,
                                               const std::function<void()>& shapes_are_set) {
  const LogPause pause(log, !settings.announces);
  if (place.is_host()) return std::make_unique<HostQueries>(context, place, options, files, log, shapes_are_set);
  return std::make_unique<GpuQueries>(context, place, settings, options, files, log, shapes_are_set);
}

}  // namespace lathe::trtexec
