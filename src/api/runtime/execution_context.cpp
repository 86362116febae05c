// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/execution_context.h"

#include <algorithm>

#include "api/callback.h"
#include "api/plan_keys.h"
#include "api/runtime/aux_streams.h"
#include "api/runtime/context_policies.h"
#include "api/runtime/devices.h"
#include "api/runtime/memory_log.h"
#include "api/runtime/runtime_config.h"
#include "base/trace_ranges.h"
#include "plugin/running_plugin.h"

namespace lathe::api {
namespace {

constexpr uint64_t kOutputAlignment = 256;

}  // namespace

Result<nv::IExecutionContext*> ExecutionContext::make(std::shared_ptr<EngineCore> core,
                                                      const ContextSettings& settings) {
  core->save_kernels();
  std::unique_ptr<ExecutionContext> made(new ExecutionContext(std::move(core)));
  made->settings_ = settings;
  std::shared_ptr<const Engine> engine = made->core_->engine;
  if (!engine->has_device())
    return fail(ErrorCode::invalid_state,
                "the engine was loaded for inspection only: load it without setInspectionOnly()");
  if (settings.kernels) LATHE_TRY(made->core_->check_cache(*settings.kernels));  // the configuration may be another's
  tell_settings(settings, engine->device().is_host(), made->core_->reporter->log());
  if (settings.cpu_threads > 0 && engine->device().is_host() && settings.cpu_threads != engine->device().threads()) {
    // Threads belong to the engine: this context gets one of its own over the same bytes.
    EngineOptions options;
    LATHE_ASSIGN(options.device, device_of_plan(engine->bytes(), settings.cpu_threads));
    const plugin::RegistrySource plugins(made->core_->runtime->registry, nullptr, made->core_->reporter->recorder());
    options.plugins = &plugins;
    options.read.threads = settings.cpu_threads;
    LATHE_ASSIGN(engine, Engine::load(engine->bytes(), engine, options));
  }
  LATHE_ASSIGN(const MemoryPolicy policy, policy_of(settings.allocation));
  if (!settings.kernels) LATHE_TRY(made->core_->make_kernels());
  const ManagedMemory memory(made->core_->reporter->log());
  LATHE_ASSIGN(made->context_, Context::create(std::move(engine), policy, settings.kernels.get()));
  made->context_->set_graphs(graphs_of(settings));
  made->context_->set_specialization(
      specialization_of(settings),
      {settings.kernels ? settings.kernels : made->core_->file_kernels(), &made->core_->reporter->log()});
  memory.log_change("IExecutionContext creation");
  made->context_->hooks.waits_after_steps = find_key(made->core_->plan(), kDebugSyncKey) != nullptr;
  made->context_->hooks.log = &made->core_->reporter->log();
  made->name_ranges();
  made->debug_ = std::make_unique<DebugTensors>(*made->core_, *made->context_);
  made->allocators_.resize(made->core_->num_io());
  made->engine_stand_in_ = std::make_unique<CudaEngine>(made->core_);
  return made.release();
}

Result<size_t> ExecutionContext::find(const char* name, Role role) const {
  const int index = core_->find_io(name);
  if (index < 0) return fail(ErrorCode::binding_invalid, "the engine has no tensor '{}'", name ? name : "(null)");
  if (role != Role::any && core_->binding(index).is_input != (role == Role::input))
    return fail(ErrorCode::binding_invalid, "tensor '{}' is not an {}", name, role == Role::input ? "input" : "output");
  return static_cast<size_t>(index);
}

void ExecutionContext::setName(const char* name) noexcept {
  guarded(changing(), "IExecutionContext::setName", [&]() -> Result<> {
    LATHE_ASSIGN(name_, to_string(name, "context name"));
    return {};
  });
}

const nv::ICudaEngine& ExecutionContext::getEngine() const noexcept {
  const nv::ICudaEngine* engine = core_->facade.load();
  return engine ? *engine : *engine_stand_in_;
}

nv::IRuntimeConfig* ExecutionContext::getRuntimeConfig() const noexcept {
  return guarded(looking(), "IExecutionContext::getRuntimeConfig", static_cast<nv::IRuntimeConfig*>(nullptr),
                 [&]() -> Result<nv::IRuntimeConfig*> { return new RuntimeConfig(core_, settings_); });
}

// Shapes

bool ExecutionContext::setInputShape(const char* tensorName, const nv::Dims& dims) noexcept {
  return guarded(changing(), "IExecutionContext::setInputShape", [&]() -> Result<> {
    LATHE_ASSIGN(const size_t i, find(tensorName, Role::input));
    LATHE_ASSIGN(const Dims given, to_dims(dims));
    LATHE_ASSIGN(const Dims sizes, core_->in_memory(i, given));
    return context_->set_input_dims(i, sizes);
  });
}

bool ExecutionContext::setOptimizationProfileAsync(int32_t profileIndex, cudaStream_t) noexcept {
  return guarded(changing(), "IExecutionContext::setOptimizationProfileAsync", [&]() -> Result<> {
    if (profileIndex < 0) return fail(ErrorCode::invalid_argument, "profile {} does not exist", profileIndex);
    return context_->set_profile(static_cast<size_t>(profileIndex));
  });
}

Result<Dims> ExecutionContext::dims_of(size_t binding) const {
  Dims dims = context_->dims(binding);
  const bool unknown = std::find(dims.begin(), dims.end(), -1) != dims.end();
  if (!unknown || core_->plan().bindings[binding].is_input || !context_->missing_shapes().empty()) return dims;
  LATHE_TRY(context_->memory_bytes());  // computes all shapes
  return context_->dims(binding);
}

nv::Dims ExecutionContext::getTensorShape(const char* tensorName) const noexcept {
  return guarded(looking(), "IExecutionContext::getTensorShape", invalid_dims(), [&]() -> Result<nv::Dims> {
    LATHE_ASSIGN(const size_t i, find(tensorName));
    LATHE_ASSIGN(const Dims dims, dims_of(i));
    return to_nv(core_->in_network(i, dims));
  });
}

nv::Dims ExecutionContext::getTensorStrides(const char* tensorName) const noexcept {
  return guarded(looking(), "IExecutionContext::getTensorStrides", invalid_dims(), [&]() -> Result<nv::Dims> {
    LATHE_ASSIGN(const size_t i, find(tensorName));
    LATHE_ASSIGN(const Dims dims, dims_of(i));
    if (std::find(dims.begin(), dims.end(), -1) != dims.end()) return invalid_dims();
    return to_nv(core_->strides(i, dims));
  });
}

bool ExecutionContext::allInputDimensionsSpecified() const noexcept {
  return guarded(looking(), "IExecutionContext::allInputDimensionsSpecified", false, [&]() -> Result<bool> {
    const auto& bindings = core_->plan().bindings;
    for (size_t i = 0; i < bindings.size(); ++i) {
      if (!bindings[i].is_input) continue;
      const Dims dims = context_->dims(i);
      if (std::find(dims.begin(), dims.end(), -1) != dims.end()) return false;
    }
    return true;
  });
}

int32_t ExecutionContext::inferShapes(int32_t nbMaxNames, const char** tensorNames) noexcept {
  return guarded(changing(), "IExecutionContext::inferShapes", -1, [&]() -> Result<int32_t> {
    if (nbMaxNames < 0 || (nbMaxNames > 0 && !tensorNames))
      return fail(ErrorCode::invalid_argument, "room for {} names, or it is null", nbMaxNames);
    const std::vector<std::string> missing = context_->missing_shapes();
    for (size_t i = 0; i < missing.size() && i < static_cast<size_t>(nbMaxNames); ++i) {
      LATHE_ASSIGN(const size_t binding, find(missing[i].c_str()));
      tensorNames[i] = core_->plan().bindings[binding].name.c_str();
    }
    if (missing.empty()) LATHE_TRY(context_->memory_bytes());
    return static_cast<int32_t>(missing.size());
  });
}

Result<> ExecutionContext::set_address(const char* name, void* data, Role role) {
  LATHE_ASSIGN(const size_t i, find(name, role));
  return context_->set_address(i, data);
}

bool ExecutionContext::setTensorAddress(const char* tensorName, void* data) noexcept {
  return guarded(changing(), "IExecutionContext::setTensorAddress",
                 [&]() -> Result<> { return set_address(tensorName, data, Role::any); });
}

bool ExecutionContext::setInputTensorAddress(const char* tensorName, const void* data) noexcept {
  return guarded(changing(), "IExecutionContext::setInputTensorAddress",
                 [&]() -> Result<> { return set_address(tensorName, const_cast<void*>(data), Role::input); });
}

bool ExecutionContext::setOutputTensorAddress(const char* tensorName, void* data) noexcept {
  return guarded(changing(), "IExecutionContext::setOutputTensorAddress",
                 [&]() -> Result<> { return set_address(tensorName, data, Role::output); });
}

const void* ExecutionContext::getTensorAddress(const char* tensorName) const noexcept {
  return guarded(looking(), "IExecutionContext::getTensorAddress", static_cast<const void*>(nullptr),
                 [&]() -> Result<const void*> {
                   LATHE_ASSIGN(const size_t i, find(tensorName));
                   return context_->address(i);
                 });
}

void* ExecutionContext::getOutputTensorAddress(const char* tensorName) const noexcept {
  return guarded(looking(), "IExecutionContext::getOutputTensorAddress", static_cast<void*>(nullptr),
                 [&]() -> Result<void*> {
                   LATHE_ASSIGN(const size_t i, find(tensorName, Role::output));
                   return context_->address(i);
                 });
}

bool ExecutionContext::setOutputAllocator(const char* tensorName, nv::IOutputAllocator* outputAllocator) noexcept {
  return guarded(changing(), "IExecutionContext::setOutputAllocator", [&]() -> Result<> {
    LATHE_ASSIGN(const size_t i, find(tensorName, Role::output));
    allocators_[i] = outputAllocator;
    if (!outputAllocator) return context_->set_output_allocator(i, nullptr);
    return context_->set_output_allocator(i, [this, i](size_t bytes, const Dims& dims) -> Result<void*> {
      const char* name = core_->plan().bindings[i].name.c_str();
      LATHE_ASSIGN(void* const memory,
                   call_application("IOutputAllocator::reallocateOutputAsync", ErrorCode::execution_failed, [&] {
                     return allocators_[i]->reallocateOutputAsync(
                         name, context_->address(i), std::max<size_t>(bytes, 1), kOutputAlignment, stream_);
                   }));
      if (memory) allocators_[i]->notifyShape(name, to_nv(core_->in_network(i, dims)));
      return memory;
    });
  });
}

nv::IOutputAllocator* ExecutionContext::getOutputAllocator(const char* tensorName) noexcept {
  return guarded(looking(), "IExecutionContext::getOutputAllocator", static_cast<nv::IOutputAllocator*>(nullptr),
                 [&]() -> Result<nv::IOutputAllocator*> {
                   LATHE_ASSIGN(const size_t i, find(tensorName, Role::output));
                   return allocators_[i];
                 });
}

int64_t ExecutionContext::getMaxOutputSize(const char* tensorName) const noexcept {
  return guarded(looking(), "IExecutionContext::getMaxOutputSize", int64_t{-1}, [&]() -> Result<int64_t> {
    LATHE_ASSIGN(const size_t i, find(tensorName, Role::output));
    LATHE_TRY(context_->memory_bytes());  // computes all shapes, or says which is missing
    const plan::TensorDesc& tensor = core_->tensor(static_cast<int>(i));
    Dims dims;
    for (const Expr& dim : tensor.dims) {
      dims.push_back(context_->largest(dim));
      if (dims.back() == Range::kUnbounded) return -1;
    }
    const std::optional<int64_t> volume = checked_volume(dims);
    return bytes_of(tensor.dtype, volume.value_or(-1)).value_or(-1);
  });
}

// Running

Result<> ExecutionContext::run(cudaStream_t stream, bool wait) {
  std::fill(times_.begin(), times_.end(), std::nullopt);
  stream_ = stream;
  debug_->begin(stream);
  note_work(number_, core_->plan().name);
  const TraceRange range(ranges_.empty() ? nullptr
                         : wait          ? "ExecutionContext::executeV2"
                                         : "ExecutionContext::enqueueV3");
  if (Result<> ran = wait ? context_->run() : context_->enqueue(stream); !ran)
    return fail(with_last_engines(std::move(ran).error()));
  LATHE_TRY(debug_->deliver());
  if (profiler_ && emits_profile_) report_times();
  return {};
}

// Of a step of a loop, the sum over its rounds.
bool ExecutionContext::report_times() const {
  const plan::Plan& plan = core_->plan();
  bool any = false;
  for (size_t i = 0; i < times_.size(); ++i) {
    if (!times_[i]) continue;
    profiler_->reportLayerTime(plan.steps[i].name.c_str(), static_cast<float>(*times_[i]));
    any = true;
  }
  return any;
}

bool ExecutionContext::enqueueV3(cudaStream_t stream) noexcept {
  return guarded(changing(), "IExecutionContext::enqueueV3", [&]() -> Result<> { return run(stream, /*wait=*/false); });
}

bool ExecutionContext::executeV2(void* const* bindings) noexcept {
  return guarded(changing(), "IExecutionContext::executeV2", [&]() -> Result<> {
    if (!bindings) return fail(ErrorCode::invalid_argument, "bindings are null");
    for (size_t i = 0; i < allocators_.size(); ++i) LATHE_TRY(context_->set_address(i, bindings[i]));
    return run(nullptr, /*wait=*/true);
  });
}

void ExecutionContext::setProfiler(nv::IProfiler* profiler) noexcept {
  guarded(changing(), "IExecutionContext::setProfiler", [&]() -> Result<> {
    profiler_ = profiler;
    context_->hooks.profiler = nullptr;
    times_.assign(profiler ? core_->plan().steps.size() : 0, std::nullopt);
    if (profiler)
      context_->hooks.profiler = [this](const plan::Step& step, double milliseconds) {
        std::optional<double>& time = times_[static_cast<size_t>(&step - core_->plan().steps.data())];
        time = time.value_or(0) + milliseconds;
      };
    return {};
  });
}

bool ExecutionContext::reportToProfiler() const noexcept {
  return guarded(changing(), "IExecutionContext::reportToProfiler", [&]() -> Result<> {
    if (profiler_ && report_times()) return {};
    return fail(ErrorCode::invalid_state, "there are no times: call setProfiler(), and then run");
  });
}

bool ExecutionContext::getDebugState(const char* name) const noexcept {
  return guarded(looking(), "IExecutionContext::getDebugState", false, [&] { return debug_->is_on(name); });
}

// Changes what settings.def lets change.
bool ExecutionContext::put(SettingId id, bool is_default, const std::function<void()>& change) noexcept {
  return guarded(changing(), setting_of(id).name, [&]() -> Result<> {
    if (!is_default) LATHE_TRY(consult(id));
    change();
    return {};
  });
}

void ExecutionContext::setDebugSync(bool sync) noexcept {
  put(SettingId::IExecutionContext_setDebugSync, !sync, [&] { context_->hooks.waits_after_steps = sync; });
}

bool ExecutionContext::setInputConsumedEvent(cudaEvent_t event) noexcept {
  return put(SettingId::IExecutionContext_setInputConsumedEvent, !event, [&] {
    consumed_ = event;
    context_->hooks.inputs_read = nullptr;
    if (event) context_->hooks.inputs_read = [event](Queue& queue) { return queue.record_event(event); };
  });
}

void ExecutionContext::setPersistentCacheLimit(size_t size) noexcept {
  guarded(changing(), "IExecutionContext::setPersistentCacheLimit", [&]() -> Result<> {
    const std::shared_ptr<Device> device = context_->engine().shared_device();
    LATHE_TRY(cache_limit_.set(device, size, core_->reporter->log()));
    context_->set_cached_bytes(device->most_cache_aside() > 0 ? size : 0);
    return {};
  });
}

void ExecutionContext::setAuxStreams(cudaStream_t* auxStreams, int32_t nbStreams) noexcept {
  guarded(changing(), "IExecutionContext::setAuxStreams",
          [&] { return set_aux_streams(*context_, auxStreams, nbStreams); });
}

bool ExecutionContext::setDebugListener(nv::IDebugListener* listener) noexcept {
  return put(SettingId::IExecutionContext_setDebugListener, !listener, [&] { debug_->set_listener(listener); });
}

bool ExecutionContext::setTensorDebugState(const char* name, bool flag) noexcept {
  return guarded(changing(), "IExecutionContext::setTensorDebugState", [&] { return debug_->turn(name, flag); });
}

bool ExecutionContext::setAllTensorsDebugState(bool flag) noexcept {
  return put(SettingId::IExecutionContext_setAllTensorsDebugState, !flag, [&] { debug_->turn_all(flag); });
}

bool ExecutionContext::setUnfusedTensorsDebugState(bool flag) noexcept {
  return guarded(changing(), "IExecutionContext::setUnfusedTensorsDebugState",
                 [&] { return debug_->turn_unfused(flag); });
}

bool ExecutionContext::isStreamCapturable(cudaStream_t stream) const noexcept {
  return guarded(looking(), "IExecutionContext::isStreamCapturable", false, [&]() -> Result<bool> {
    // CUDA's default stream, which is null, cannot be captured.
    return stream && context_->missing_shapes().empty() ? context_->is_capturable() : Result<bool>(false);
  });
}

bool ExecutionContext::setCommunicator(void* communicator) noexcept {
  return put(SettingId::IExecutionContext_setCommunicator, !communicator, [] {});
}

}  // namespace lathe::api
