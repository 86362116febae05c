// SPDX-License-Identifier: Apache-2.0
#include "trtexec/session.h"

#include "cli/failure.h"
#include "cli/tensor_file.h"
#include "trtexec/accuracy.h"
#include "trtexec/build.h"
#include "trtexec/debug_tensors.h"
#include "trtexec/layer_times.h"
#include "trtexec/report.h"

namespace lathe::trtexec {

using cli::Failure;
using nvinfer1::ExecutionContextAllocationStrategy;

MeasuringSession::MeasuringSession(nvinfer1::ICudaEngine& engine, const GpuContext* gpu, const QuerySettings& settings,
                                   const Options& options, TrtexecLog& log)
    : engine_(engine), gpu_(gpu), settings_(settings), options_(options), log_(log) {
  if (gpu_) place_ = IoPlace(gpu_->calls(), options.managed_memory);
}

std::unique_ptr<nvinfer1::IExecutionContext> MeasuringSession::make_context() {
  const auto strategy = options_.allocation_strategy == "static" ? ExecutionContextAllocationStrategy::kSTATIC
                                                                 : ExecutionContextAllocationStrategy::kUSER_MANAGED;
  std::unique_ptr<nvinfer1::IExecutionContext> context(engine_.createExecutionContext(strategy));
  if (!context) fail_as_reported("Unable to create execution context");
  const int64_t cache = gpu_ ? static_cast<int64_t>(options_.persistent_cache_ratio *
                                                    gpu_facts(gpu_->calls(), gpu_->ordinal()).persisting_cache_bytes)
                             : 0;
  if (cache > 0) context->setPersistentCacheLimit(static_cast<size_t>(cache));
  log_.info("Setting persistentCacheLimit to {} bytes.", cache);
  if (options_.use_profile != 0) {
    const std::unique_ptr<GpuStream> stream = gpu_ ? std::make_unique<GpuStream>(gpu_->calls()) : nullptr;
    if (!context->setOptimizationProfileAsync(options_.use_profile, stream ? stream->cuda() : nullptr))
      fail_as_reported("--useProfile: the profile was refused");
    if (stream) stream->synchronize();
  }
  return context;
}

// Memory of the application, for --allocationStrategy=profile and runtime.
void MeasuringSession::give_memory(nvinfer1::IExecutionContext& context) {
  if (options_.allocation_strategy == "static") return;
  int64_t size = options_.allocation_strategy == "profile"
                     ? engine_.getDeviceMemorySizeForProfileV2(options_.use_profile)
                     : -1;  // the shapes in use say it; so they do where the profile sets no limit
  if (size < 0) size = static_cast<int64_t>(context.updateDeviceMemorySizeForShapes());
  memory_.push_back(place_.engine_memory(static_cast<size_t>(size)));
  context.setDeviceMemoryV2(memory_.back().get(), size);
  log_.info("Execution context has {:.6g} MiB of memory of the application.", static_cast<double>(size) / 0x1p20);
}

std::unique_ptr<QueryStream> MeasuringSession::make_stream(nvinfer1::IExecutionContext& context,
                                                           const QuerySettings& settings, const ReferencePair& files) {
  return make_query_stream(context, place_, settings, options_, files, log_, [&] { give_memory(context); });
}

void MeasuringSession::prepare() {
  for (int i = 0; i < options_.streams; ++i) {
    contexts_.push_back(make_context());
    const int64_t size = engine_.getDeviceMemorySizeV2();
    if (size >= 0)
      log_.info("Created execution context with device memory size: {:.6g} MiB", static_cast<double>(size) / 0x1p20);
    streams_.push_back(make_stream(*contexts_.back(), i ? repeated() : settings_, options_.pairs[0]));
  }
}

// What is said once need not be said of each stream.
QuerySettings MeasuringSession::repeated() const {
  QuerySettings settings = settings_;
  settings.announces = false;
  return settings;
}

RunLimits MeasuringSession::limits() const {
  RunLimits limits;
  limits.iterations = options_.iterations;
  limits.seconds = options_.seconds;
  limits.idle_ms = options_.idle_ms;
  limits.sleep_ms = options_.sleep_ms;
  limits.thread_each = options_.thread_per_stream;
  limits.calls = gpu_ ? &gpu_->calls() : nullptr;
  limits.ordinal = gpu_ ? gpu_->ordinal() : 0;
  return limits;
}

void MeasuringSession::warm_up(const std::vector<std::unique_ptr<QueryStream>>& streams) {
  RunLimits warm = limits();
  warm.iterations = 0;
  warm.sleep_ms = 0;
  warm.seconds = options_.warm_up_ms / 1e3;
  log_.info("Starting inference");
  const RunTrace warmed = run_queries(streams, warm);
  log_.info("Warmup completed {} queries over {} ms", warmed.queries.size(), options_.warm_up_ms);
}

RunTrace MeasuringSession::run(const std::vector<std::unique_ptr<QueryStream>>& streams) {
  RunTrace trace = run_queries(streams, limits());
  log_.info("Timing trace has {} queries over {:.6g} s", trace.queries.size(), trace.seconds);
  return trace;
}

std::vector<cli::HostTensor> MeasuringSession::run_once(QueryStream& stream) {
  const std::unique_ptr<Timebase> base = stream.begin();
  stream.enqueue(*base);
  stream.finish(*base);
  return stream.outputs();
}

void MeasuringSession::measure() {
  warm_up(streams_);
  const RunTrace trace = run(streams_);
  print_performance(trace, options_, {gpu_ != nullptr, settings_}, log_);
  if (!options_.export_times.empty()) export_times(trace, options_.export_times);
  if (!options_.dump_output && !options_.dump_raw_bindings && options_.export_output.empty()) return;
  const std::vector<cli::HostTensor> outputs = trace.queries.empty() ? run_once(*streams_[0]) : streams_[0]->outputs();
  if (options_.dump_output) print_outputs(outputs, log_);
  if (options_.dump_raw_bindings) write_raw_bindings(streams_[0]->bindings(), outputs, log_);
  if (!options_.export_output.empty()) export_outputs(outputs, options_.export_output);
}

void MeasuringSession::profile_layers() {
  if (!options_.profiles_layers()) return;
  LayerTimes times;
  QuerySettings settings = repeated();
  settings.cuda_graph = false;  // its layers could not be told apart
  settings.expose_dma = true;
  std::vector<std::unique_ptr<QueryStream>> stream;
  stream.push_back(make_stream(*contexts_[0], settings, options_.pairs[0]));
  warm_up(stream);
  contexts_[0]->setProfiler(&times);
  run(stream);
  contexts_[0]->setProfiler(nullptr);
  if (options_.dump_profile) times.print(log_);
  if (!options_.export_profile.empty()) cli::write_file(options_.export_profile, times.json());
}

void MeasuringSession::save_debug_tensors() {
  if (!DebugTensorFiles::wanted(options_)) return;
  DebugTensorFiles files(options_, gpu_ ? &gpu_->calls() : nullptr, log_);
  const std::unique_ptr<nvinfer1::IExecutionContext> context = make_context();
  QuerySettings settings = repeated();
  settings.cuda_graph = false;
  const std::unique_ptr<QueryStream> stream = make_stream(*context, settings, options_.pairs[0]);
  files.attach(*context);
  run_once(*stream);
}

bool MeasuringSession::compare() {
  bool good = true;
  for (const ReferencePair& pair : options_.pairs) {
    if (pair.outputs.empty()) continue;
    const std::unique_ptr<QueryStream> stream = make_stream(*contexts_[0], repeated(), pair);
    good = check_accuracy(run_once(*stream), pair.outputs, options_, log_) && good;
  }
  return good;
}

}  // namespace lathe::trtexec
