// SPDX-License-Identifier: Apache-2.0
// How the engine is loaded, and what recreates its context. run.cpp runs it.
#include "wrapper/wrapped_engine.h"

#include <algorithm>

#include "wrapper/run.h"

namespace lathe::wrapper {

std::atomic<bool> WrappedEngine::safe_mode = false;

WrappedEngine::WrappedEngine(std::shared_ptr<nv::IRuntime> runtime, RecordContent content)
    : runtime_(std::move(runtime)),
      reporter_(runtime_->getLogger()),
      content_(std::move(content)),
      where_(fmt::format("EngineWrapper '{}'", content_.fields.name)) {
  reporter_.set_recorder(runtime_->getErrorRecorder());
}

WrappedEngine::~WrappedEngine() {
  maker_.save_cache(log());
  if (context_) context_->setProfiler(nullptr);
  recording_.reset();
  context_.reset();
}

Result<> WrappedEngine::start() {
  LATHE_TRY(choose_device());
  LATHE_ASSIGN(const std::optional<cuda::ContextScope> scope, device_.enter());
  LATHE_TRY(load_engine());
  LATHE_TRY(read_tensors());
  output_allocator_ = content_.fields.needsOutputAllocator;
  LATHE_ASSIGN(nothing_, device_.allocate(1));
  maker_.load_cache(*engine_, content_.settings, log());
  LATHE_TRY(set_first_budget());
  return recreate();
}

Result<> WrappedEngine::choose_device() {
  EngineTarget target = content_.fields.target;
  if (target.kind == EngineTarget::Kind::kDLA)
    return fail(ErrorCode::plan_target, "the engine is for a DLA core, and there are none: build it for the GPU");
  if (target.kind == EngineTarget::Kind::kGPU) {
    LATHE_ASSIGN(const std::vector<EngineTarget> gpus, list_gpus());
    LATHE_ASSIGN(target, choose_gpu(target, content_.fields.hardwareCompatible, gpus, current_gpu()));
    if (gpus.size() > 1 && !safe_mode)
      log().print(Severity::info,
                  "{}: this machine has {} GPUs: cuda:{} must be current where the engine is run, or "
                  "setMultiDeviceSafeMode() on",
                  where_, gpus.size(), target.id);
  }
  LATHE_ASSIGN(device_, EngineDevice::open(target));
  return {};
}

Result<> WrappedEngine::load_engine() {
  engine_.reset(runtime_->deserializeCudaEngine(content_.plan.data(), content_.plan.size()));
  is_reported_ = !engine_;
  if (!engine_)
    return fail(ErrorCode::execution_failed, "the runtime does not load the plan of {} bytes, and has reported why",
                content_.plan.size());
  content_.plan = std::string();  // the engine gives it back
  engine_->setErrorRecorder(&errors_);
  return {};
}

Result<> WrappedEngine::set_first_budget() {
  if (engine_->getStreamableWeightsSize() <= 0) return {};
  const int64_t budget = engine_->getWeightStreamingAutomaticBudget();
  if (!engine_->setWeightStreamingBudgetV2(budget)) return fail(refused("setWeightStreamingBudgetV2()"));
  log().print(Severity::info, "{}: {} of {} bytes of weights stay on the device", where_,
              engine_->getWeightStreamingBudgetV2(), engine_->getStreamableWeightsSize());
  return {};
}

Result<> WrappedEngine::read_tensors_of(nv::TensorIOMode mode, const std::vector<std::string>& names,
                                        std::vector<EngineTensor>& tensors) {
  const std::string_view kind = mode == nv::TensorIOMode::kINPUT ? "input" : "output";
  for (const std::string& name : names) {
    if (engine_->getTensorIOMode(name.c_str()) != mode)
      return fail(ErrorCode::binding_invalid, "the engine has no {} '{}': give the names of the network", kind, name);
    if (std::count(names.begin(), names.end(), name) > 1)
      return fail(ErrorCode::binding_invalid, "{} '{}' is there twice", kind, name);
    tensors.push_back({name, engine_->getTensorDataType(name.c_str()),
                       engine_->getTensorLocation(name.c_str()) == nv::TensorLocation::kHOST || device_.is_host(),
                       engine_->isShapeInferenceIO(name.c_str())});
  }
  for (int32_t i = 0; i < engine_->getNbIOTensors(); ++i) {
    const char* const name = engine_->getIOTensorName(i);
    if (engine_->getTensorIOMode(name) == mode && std::find(names.begin(), names.end(), name) == names.end())
      return fail(ErrorCode::binding_missing, "the fields do not name the engine's {} '{}': list all of them", kind,
                  name);
  }
  return {};
}

Result<> WrappedEngine::read_tensors() {
  LATHE_TRY(read_tensors_of(nv::TensorIOMode::kINPUT, content_.fields.inputs, inputs_));
  LATHE_TRY(read_tensors_of(nv::TensorIOMode::kOUTPUT, content_.fields.outputs, outputs_));
  allocators_ = std::vector<AllocatedOutput>(outputs_.size());
  // Of all inputs, those that sizes are computed from too: their values are sizes.
  content_.settings.dynamic_inputs = std::any_of(inputs_.begin(), inputs_.end(), [&](const EngineTensor& input) {
    const nv::Dims dims = engine_->getTensorShape(input.name.c_str());
    return input.is_shape || std::any_of(dims.d, dims.d + std::max(dims.nbDims, 0), [](auto d) { return d < 0; });
  });
  return {};
}

// The former context goes first: it may hold memory that the new one needs. Graphs of it go with it.
Result<> WrappedEngine::recreate() {
  LATHE_ASSIGN(const std::optional<cuda::ContextScope> scope, device_.enter());
  maker_.save_cache(log());
  recording_.reset();
  if (context_) context_->setProfiler(nullptr);
  context_.reset();
  log().print(Severity::verbose, "{}: a context is created", where_);
  context_ = maker_.create(*engine_, content_.fields.allocation, content_.settings, log());
  if (!context_) return fail(refused("createExecutionContext()"));
  ++counts_.contexts;
  if (profiling_) context_->setProfiler(&times_);
  return bind_communicator();
}

Result<> WrappedEngine::bind_communicator() {
  if (!communicator_) return {};
  const std::optional<bool> is_taken = give_communicator(*context_, communicator_);
  if (!is_taken) return fail(ErrorCode::call_missing, "this interface has no communicators");
  if (!*is_taken) return fail(refused("setCommunicator()"));
  return {};
}

Result<EngineRecord> WrappedEngine::record() const {
  const std::unique_ptr<nv::IHostMemory> plan(engine_->serialize());
  if (!plan) return fail(ErrorCode::execution_failed, "the engine does not serialize");
  RecordContent content = content_;
  content.plan.assign(static_cast<const char*>(plan->data()), plan->size());
  return write_record(content);
}

Result<bool> WrappedEngine::is_stream_capturable(void* stream) const {
  if (device_.is_host() || !is_capturable_by_settings()) return false;
  LATHE_ASSIGN(const std::optional<cuda::ContextScope> scope, device_.enter());
  return may_capture(*context_, static_cast<cudaStream_t>(stream));
}

Result<> WrappedEngine::set_graphs(bool on) {
  if (on && content_.fields.needsOutputAllocator)
    return fail(ErrorCode::invalid_state,
                "the engine needs output allocators, because sizes of its outputs depend on data: graphs cannot be "
                "recorded of it");
  if (on && output_allocator_)
    return fail(ErrorCode::invalid_state,
                "output allocators were asked for, which graphs cannot hold: turn one of them off");
  if (on && device_.is_host()) say_once("graphs", "a CPU has no CUDA graphs: runs are not recorded");
  if (on && content_.settings.runtime_captures())
    say_once("graphs", "the runtime captures graphs itself: the wrapper records none");
  graphs_ = on;
  if (!on) recording_.reset();
  return {};
}

void WrappedEngine::set_pre_allocated(bool on) {
  pre_allocated_ = on;
  next_outputs_.clear();
}

Result<> WrappedEngine::set_output_allocator(bool on) {
  if (!on && content_.fields.needsOutputAllocator)
    return fail(ErrorCode::invalid_state,
                "the engine needs output allocators, because sizes of its outputs depend on data");
  if (on && graphs_)
    return fail(ErrorCode::invalid_state,
                "graphs were asked for, which cannot hold output allocators: turn one of "
                "them off");
  output_allocator_ = on;
  if (!on)
    for (const EngineTensor& output : outputs_) context_->setOutputAllocator(output.name.c_str(), nullptr);
  return {};
}

Result<> WrappedEngine::set_allocation(ResourceAllocation allocation) {
  if (allocation != ResourceAllocation::kSTATIC && allocation != ResourceAllocation::kDYNAMIC)
    return fail(ErrorCode::invalid_argument, "there is no resource allocation {}: say kSTATIC or kDYNAMIC",
                static_cast<int>(allocation));
  if (allocation == content_.fields.allocation) return {};
  content_.fields.allocation = allocation;
  return recreate();
}

// Budgets are set without contexts.
Result<> WrappedEngine::set_budget(int64_t bytes) {
  const int64_t all = engine_->getStreamableWeightsSize();
  if (all <= 0)
    return fail(ErrorCode::invalid_state,
                "the plan has no weights that can be streamed: build it with BuilderFlag::kWEIGHT_STREAMING");
  if (bytes < 0) return fail(ErrorCode::invalid_argument, "a budget of {} bytes is negative: say 0 to {}", bytes, all);
  if (bytes > all)
    log().print(Severity::warning, "{}: a budget of {} bytes is more than the {} of all weights, which stay", where_,
                bytes, all);
  LATHE_ASSIGN(const std::optional<cuda::ContextScope> scope, device_.enter());
  maker_.save_cache(log());
  recording_.reset();
  context_->setProfiler(nullptr);
  context_.reset();
  const bool is_set = engine_->setWeightStreamingBudgetV2(std::min(bytes, all));
  const Error error = is_set ? Error() : refused("setWeightStreamingBudgetV2()");
  LATHE_TRY(recreate());  // with the former budget, where the new one was refused
  if (!is_set) return fail(error);
  return {};
}

Result<> WrappedEngine::set_communicator(void* communicator) {
  if (!content_.fields.needsMultiDevice)
    return fail(ErrorCode::invalid_state,
                "the engine has no layers that work across devices: a communicator would have no effect");
  if (!communicator)
    return fail(ErrorCode::invalid_argument, "the communicator is null: releaseCommunicator() gives one up");
  void* const former = std::exchange(communicator_, communicator);
  Result<> bound = bind_communicator();
  if (!bound) communicator_ = former;
  return bound;
}

// What was compiled is saved before the context goes; strategies are those of before.
Result<> WrappedEngine::release_communicator() {
  communicator_ = nullptr;
  return recreate();
}

Result<> WrappedEngine::set_profiling(bool on) {
  if (on == profiling_) return {};
  profiling_ = on;
  if (!on) return recreate();
  recording_.reset();
  times_.restart();
  context_->setProfiler(&times_);
  return {};
}

// With safe mode the GPU is current in the scope; else the caller has seen to it.
Result<std::optional<cuda::ContextScope>> WrappedEngine::enter() {
  if (device_.is_host() || !safe_mode) return std::optional<cuda::ContextScope>();
  const int current = current_gpu();
  if (current >= 0 && current != device_.target().id)
    say_once("device", fmt::format("cuda:{} is current where the engine is run, which is on cuda:{}: that one is made "
                                   "current for each run",
                                   current, device_.target().id));
  return device_.enter();
}

void WrappedEngine::say_once(std::string_view topic, std::string text) {
  if (!said_.insert(std::string(topic)).second) return;
  log().print(Severity::warning, "{}: {}", where_, text);
}

}  // namespace lathe::wrapper
