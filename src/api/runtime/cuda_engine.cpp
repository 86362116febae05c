// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/cuda_engine.h"

#include <algorithm>

#include "api/host_memory.h"
#include "api/living_products.h"
#include "api/plan_keys.h"
#include "api/runtime/devices.h"
#include "api/runtime/engine_inspector.h"
#include "api/runtime/execution_context.h"
#include "api/runtime/gpu_allocator.h"
#include "api/runtime/hardware.h"
#include "api/runtime/libraries.h"
#include "api/runtime/memory_log.h"
#include "api/runtime/plan_bytes.h"
#include "api/runtime/refitter.h"
#include "api/runtime/type_words.h"
#include "base/own_object.h"
#include "lathe.h"
#include "plan/aliased_bindings.h"
#include "plan/amend.h"
#include "plugin/running_plugin.h"

namespace lathe::api {
namespace {

// The bindings that are there for debug listeners alone: the last ones, each of them an output.
Result<size_t> count_hidden(const plan::Plan& plan) {
  size_t count = 0;
  for (auto binding = plan.bindings.rbegin(); binding != plan.bindings.rend(); ++binding, ++count) {
    const std::string* role = find_key(plan, kDebugTensorKey, binding->name);
    if (!role || *role != kIsHidden) break;
    if (binding->is_input) return fail(ErrorCode::plan_malformed, "debug tensor '{}' is an input", binding->name);
  }
  return count;
}

int64_t pick(const plan::SymbolProfile& range, size_t select) {
  return select == 0 ? range.min : select == 1 ? range.opt : range.max;
}

}  // namespace

int EngineCore::find_io(const char* name) const {
  const int index = name ? engine->find_binding(name) : -1;
  return index < static_cast<int>(num_io()) ? index : -1;
}

std::vector<std::array<std::vector<int64_t>, 3>> EngineCore::profile_values(size_t profile) const {
  std::vector<std::array<std::vector<int64_t>, 3>> values(plan().bindings.size());
  for (SymbolId id = 0; id < plan().symbols.size(); ++id) {
    const Symbol& symbol = plan().symbols[id];
    if (symbol.source != SymbolSource::input_value || symbol.tensor >= values.size()) continue;
    for (size_t select = 0; select < 3; ++select) {
      std::vector<int64_t>& list = values[symbol.tensor][select];
      list.resize(std::max<size_t>(list.size(), symbol.index + 1));
      list[symbol.index] = pick(plan().profiles[profile].symbols[id], select);
    }
  }
  return values;
}

Result<nv::ICudaEngine*> CudaEngine::load(std::shared_ptr<RuntimeCore> runtime, std::span<const std::byte> bytes,
                                          std::shared_ptr<const void> owner) {
  auto core = std::make_shared<EngineCore>();
  core->reporter = std::make_shared<Reporter>(std::shared_ptr<const Reporter>(runtime->reporter));
  Log& log = runtime->reporter->log();
  log.print(Severity::info, "Loaded engine size: {} MiB", bytes.size() >> 20);
  const ManagedMemory memory(log);
  LATHE_ASSIGN(const plan::PlanHeader header, plan::read_header(bytes));
  core->hardware_compatibility = header.hardware_compatibility;
  EngineOptions options;
  if (!runtime->inspection_only) {
    const size_t resident = resident_bytes();
    LATHE_ASSIGN(std::shared_ptr<Device> device, device_of_plan(bytes, runtime->cpu_threads));
    log_start(*device, resident, log);
    warn_of_eager_loading(*device, log);
    options.device = with_allocator(std::move(device), runtime->allocator, runtime->reporter);
  }
  const plugin::RegistrySource plugins(runtime->registry, runtime->allocator, runtime->reporter->recorder());
  options.plugins = &plugins;
  options.loading_threads = runtime->max_threads;
  options.read.threads = runtime->loading_threads();
  const bool keeps_bytes = !options.device || options.device->is_host();
  if (keeps_bytes && !owner) {
    LATHE_ASSIGN(PlanBytes copy, copy_plan(bytes));
    bytes = copy.bytes;
    owner = std::move(copy.owner);
  }
  LATHE_ASSIGN(core->engine, Engine::load(bytes, keeps_bytes ? std::move(owner) : nullptr, options));
  if (options.device) LATHE_TRY(core->open_cache_file(*runtime));
  LATHE_ASSIGN(core->num_hidden, count_hidden(core->plan()));
  LATHE_TRY(core->find_formats());
  if (options.device) warn_of_other_hardware(header, *options.device, log);
  memory.log_change("engine deserialization");
  core->runtime = std::move(runtime);
  nv::ICudaEngine* engine = new CudaEngine(core);
  core->facade = engine;
  return engine;
}

CudaEngine::CudaEngine(std::shared_ptr<EngineCore> core) : core_(std::move(core)) {
  mImpl = this;
  for (size_t i = 0; i < core_->plan().profiles.size(); ++i) profile_values_.push_back(core_->profile_values(i));
}

CudaEngine::~CudaEngine() noexcept {
  nv::ICudaEngine* self = this;
  // Contexts have an engine of their own, which stands in for one that is deleted.
  if (core_->facade.compare_exchange_strong(self, nullptr))
    warn_of_living_products(*core_->reporter, "ICudaEngine", core_.use_count() > 1);
  core_->save_kernels();
}

Result<size_t> CudaEngine::index_of(const char* name) const {
  const int index = core_->find_io(name);
  if (index >= 0) return static_cast<size_t>(index);
  return fail(ErrorCode::binding_invalid, "the engine has no input or output '{}'", name ? name : "(null)");
}

int CudaEngine::find(const char* where, const char* name) const noexcept { return find(where, name, 0); }

int CudaEngine::find(const char* where, const char* name, int32_t profile) const noexcept {
  return guarded(*core_->reporter, where, -1, [&]() -> Result<int> {
    LATHE_ASSIGN(const size_t index, index_of(name));
    LATHE_TRY(check_profile(profile));
    return static_cast<int>(index);
  });
}

nv::IHostMemory* CudaEngine::serialize() const noexcept {
  return guarded(*core_->reporter, "ICudaEngine::serialize", static_cast<nv::IHostMemory*>(nullptr),
                 [&]() -> Result<nv::IHostMemory*> {
                   LATHE_ASSIGN(std::vector<std::byte> bytes, core_->engine->serialize());
                   return new HostMemory(std::move(bytes));
                 });
}

nv::IHostMemory* CudaEngine::serializeWithConfig(nv::ISerializationConfig& config) const noexcept {
  return guarded(*core_->reporter, "ICudaEngine::serializeWithConfig", static_cast<nv::IHostMemory*>(nullptr),
                 [&]() -> Result<nv::IHostMemory*> {
                   const bool excludes = config.getFlag(nv::SerializationFlag::kEXCLUDE_WEIGHTS);
                   if (excludes && !isRefittable())
                     return fail(ErrorCode::invalid_state,
                                 "a plan without weights must be one that they can be given to: build the engine with "
                                 "BuilderFlag::kREFIT, or clear SerializationFlag::kEXCLUDE_WEIGHTS");
                   const bool refits = excludes || config.getFlag(nv::SerializationFlag::kINCLUDE_REFIT);
                   LATHE_ASSIGN(
                       std::vector<std::byte> bytes,
                       core_->engine->serialize(refits ? Engine::Refits::kept : Engine::Refits::left_out,
                                                excludes ? Engine::WeightsOf::that_stay : Engine::WeightsOf::all));
                   if (config.getFlag(nv::SerializationFlag::kEXCLUDE_LEAN_RUNTIME))
                     LATHE_TRY(plan::remove_section(bytes, plan::kLeanRuntime));
                   return new HostMemory(std::move(bytes));
                 });
}

nv::ISerializationConfig* CudaEngine::createSerializationConfig() noexcept {
  return guarded(*core_->reporter, "ICudaEngine::createSerializationConfig",
                 static_cast<nv::ISerializationConfig*>(nullptr),
                 [&]() -> Result<nv::ISerializationConfig*> { return new SerializationConfig(core_->reporter); });
}

nv::IEngineInspector* CudaEngine::createEngineInspector() const noexcept {
  return guarded(*core_->reporter, "ICudaEngine::createEngineInspector", static_cast<nv::IEngineInspector*>(nullptr),
                 [&]() -> Result<nv::IEngineInspector*> { return new EngineInspector(core_); });
}

nv::IRefitter* CudaEngine::createRefitter(nv::ILogger& logger) noexcept {
  return guarded(*core_->reporter, "createInferRefitter", static_cast<nv::IRefitter*>(nullptr),
                 [&]() -> Result<nv::IRefitter*> { return new Refitter(core_, logger); });
}

nv::TacticSources CudaEngine::getTacticSources() const noexcept {
  nv::TacticSources sources =
      bit_of(nv::TacticSource::kEDGE_MASK_CONVOLUTIONS) | bit_of(nv::TacticSource::kJIT_CONVOLUTIONS);
  for (const plan::Step& step : core_->plan().steps) {
    const auto* device = std::get_if<plan::DeviceLaunches>(&step.work);
    if (!device) continue;
    for (const Launch& launch : device->launches)
      for (const auto& [source, library] : kLibrarySources)
        if (launch.library == library) sources |= bit_of(source);
  }
  return sources;
}

nv::ProfilingVerbosity CudaEngine::getProfilingVerbosity() const noexcept { return verbosity_of(core_->plan()); }

nv::Dims CudaEngine::getTensorShape(const char* tensorName) const noexcept {
  return guarded(*core_->reporter, "ICudaEngine::getTensorShape", invalid_dims(), [&]() -> Result<nv::Dims> {
    LATHE_ASSIGN(const size_t i, index_of(tensorName));
    Dims dims;
    for (const Expr& dim : core_->tensor(static_cast<int>(i)).dims) dims.push_back(dim.as_constant().value_or(-1));
    return to_nv(core_->in_network(i, std::move(dims)));
  });
}

nv::DataType CudaEngine::getTensorDataType(const char* tensorName) const noexcept {
  const int i = find("ICudaEngine::getTensorDataType", tensorName);
  return i < 0 ? nv::DataType::kFLOAT : to_nv(core_->tensor(i).dtype);
}

nv::TensorLocation CudaEngine::getTensorLocation(const char* tensorName) const noexcept {
  const int i = find("ICudaEngine::getTensorLocation", tensorName);
  return i >= 0 && core_->binding(i).is_shape_tensor ? nv::TensorLocation::kHOST : nv::TensorLocation::kDEVICE;
}

bool CudaEngine::isShapeInferenceIO(const char* tensorName) const noexcept {
  const int i = find("ICudaEngine::isShapeInferenceIO", tensorName);
  return i >= 0 && core_->binding(i).is_shape_tensor;
}

nv::TensorIOMode CudaEngine::getTensorIOMode(const char* tensorName) const noexcept {
  const int i = find("ICudaEngine::getTensorIOMode", tensorName);
  if (i < 0) return nv::TensorIOMode::kNONE;
  return core_->binding(i).is_input ? nv::TensorIOMode::kINPUT : nv::TensorIOMode::kOUTPUT;
}

// How many channels lie together; 1 also of what is not found.
int32_t CudaEngine::vector_of(int binding) const {
  const MemoryFormat* format = binding < 0 ? nullptr : core_->format(binding);
  return format ? static_cast<int32_t>(format->layout().vector) : 1;
}

nv::TensorFormat CudaEngine::format_of(int binding) const {
  const MemoryFormat* format = binding < 0 ? nullptr : core_->format(binding);
  return static_cast<nv::TensorFormat>(format ? format->layout().number : 0);
}

int32_t CudaEngine::getTensorBytesPerComponent(const char* tensorName) const noexcept {
  const int i = find("ICudaEngine::getTensorBytesPerComponent", tensorName);
  return vector_of(i) > 1 ? static_cast<int32_t>(size_of(core_->tensor(i).dtype)) : -1;
}
int32_t CudaEngine::getTensorBytesPerComponentV2(const char* tensorName, int32_t profileIndex) const noexcept {
  const int i = find("ICudaEngine::getTensorBytesPerComponent", tensorName, profileIndex);
  return vector_of(i) > 1 ? static_cast<int32_t>(size_of(core_->tensor(i).dtype)) : -1;
}
int32_t CudaEngine::getTensorComponentsPerElement(const char* tensorName) const noexcept {
  const int i = find("ICudaEngine::getTensorComponentsPerElement", tensorName);
  return vector_of(i) > 1 ? vector_of(i) : -1;
}
int32_t CudaEngine::getTensorComponentsPerElementV2(const char* tensorName, int32_t profileIndex) const noexcept {
  const int i = find("ICudaEngine::getTensorComponentsPerElement", tensorName, profileIndex);
  return vector_of(i) > 1 ? vector_of(i) : -1;
}
nv::TensorFormat CudaEngine::getTensorFormat(const char* tensorName) const noexcept {
  const int i = find("ICudaEngine::getTensorFormat", tensorName);
  return format_of(i);
}
nv::TensorFormat CudaEngine::getTensorFormatV2(const char* tensorName, int32_t profileIndex) const noexcept {
  const int i = find("ICudaEngine::getTensorFormat", tensorName, profileIndex);
  return format_of(i);
}
const char* CudaEngine::getTensorFormatDesc(const char* tensorName) const noexcept {
  const int i = find("ICudaEngine::getTensorFormatDesc", tensorName);
  return i < 0 ? "" : core_->format_words[static_cast<size_t>(i)].c_str();
}
const char* CudaEngine::getTensorFormatDescV2(const char* tensorName, int32_t profileIndex) const noexcept {
  const int i = find("ICudaEngine::getTensorFormatDesc", tensorName, profileIndex);
  return i < 0 ? "" : core_->format_words[static_cast<size_t>(i)].c_str();
}
int32_t CudaEngine::getTensorVectorizedDim(const char* tensorName) const noexcept {
  const int i = find("ICudaEngine::getTensorVectorizedDim", tensorName);
  return vector_of(i) > 1 ? static_cast<int32_t>(core_->format(i)->channel_axis()) : -1;
}
int32_t CudaEngine::getTensorVectorizedDimV2(const char* tensorName, int32_t profileIndex) const noexcept {
  const int i = find("ICudaEngine::getTensorVectorizedDim", tensorName, profileIndex);
  return vector_of(i) > 1 ? static_cast<int32_t>(core_->format(i)->channel_axis()) : -1;
}

nv::Dims CudaEngine::getProfileShape(const char* tensorName, int32_t profileIndex,
                                     nv::OptProfileSelector select) const noexcept {
  return guarded(*core_->reporter, "ICudaEngine::getProfileShape", invalid_dims(), [&]() -> Result<nv::Dims> {
    const int i = core_->find_io(tensorName);
    if (i < 0 || !core_->binding(i).is_input)
      return fail(ErrorCode::binding_invalid, "the engine has no input '{}'", tensorName ? tensorName : "(null)");
    LATHE_ASSIGN(const size_t profile, check_profile(profileIndex));
    if (static_cast<uint32_t>(select) > 2)
      return fail(ErrorCode::invalid_argument, "selector {} does not exist", static_cast<int>(select));
    std::vector<int64_t> symbols;
    for (const plan::SymbolProfile& range : core_->plan().profiles[profile].symbols)
      symbols.push_back(pick(range, static_cast<size_t>(select)));
    Dims dims;
    for (const Expr& dim : core_->tensor(i).dims) dims.push_back(dim.evaluate(symbols).value_or(-1));
    return to_nv(core_->in_network(static_cast<size_t>(i), std::move(dims)));
  });
}

const int64_t* CudaEngine::getProfileTensorValuesV2(const char* tensorName, int32_t profileIndex,
                                                    nv::OptProfileSelector select) const noexcept {
  return guarded(*core_->reporter, "ICudaEngine::getProfileTensorValuesV2", static_cast<const int64_t*>(nullptr),
                 [&]() -> Result<const int64_t*> {
                   LATHE_ASSIGN(const size_t i, index_of(tensorName));
                   LATHE_ASSIGN(const size_t profile, check_profile(profileIndex));
                   const auto selector = static_cast<size_t>(select);
                   if (selector > 2) return fail(ErrorCode::invalid_argument, "selector {} does not exist", selector);
                   const auto& values = profile_values_[profile][i][selector];
                   return values.empty() ? nullptr : values.data();
                 });
}

const char* CudaEngine::getIOTensorName(int32_t index) const noexcept {
  return guarded(*core_->reporter, "ICudaEngine::getIOTensorName", static_cast<const char*>(nullptr),
                 [&]() -> Result<const char*> {
                   if (index < 0 || index >= getNbIOTensors())
                     return fail(ErrorCode::invalid_argument, "there is no input or output {}: the engine has {}",
                                 index, getNbIOTensors());
                   return core_->binding(index).name.c_str();
                 });
}

bool CudaEngine::isDebugTensor(const char* name) const noexcept {
  if (name && find_key(core_->plan(), kDebugTensorKey, name)) return true;
  find("ICudaEngine::isDebugTensor", name);
  return false;
}

const char* CudaEngine::getAliasedInputTensor(const char* tensorName) const noexcept {
  const int i = find("ICudaEngine::getAliasedInputTensor", tensorName);
  if (i < 0) return nullptr;
  const plan::Plan& plan = core_->plan();
  const std::optional<uint32_t> input =
      plan::aliased_input(plan, static_cast<uint32_t>(&core_->binding(i) - plan.bindings.data()));
  return input ? plan.bindings[*input].name.c_str() : nullptr;
}

int64_t CudaEngine::getDeviceMemorySizeForProfileV2(int32_t profileIndex) const noexcept {
  return guarded(*core_->reporter, "ICudaEngine::getDeviceMemorySizeForProfileV2", int64_t{-1},
                 [&]() -> Result<int64_t> {
                   LATHE_ASSIGN(const size_t profile, check_profile(profileIndex));
                   LATHE_TRY(core_->make_kernels());
                   const MemoryLimit* limit = core_->engine->memory_limit(profile);
                   return limit ? static_cast<int64_t>(limit->total()) : -1;
                 });
}

int64_t CudaEngine::getDeviceMemorySizeV2() const noexcept {
  return guarded(*core_->reporter, "ICudaEngine::getDeviceMemorySizeV2", int64_t{-1}, [&]() -> Result<int64_t> {
    int64_t most = 0;
    LATHE_TRY(core_->make_kernels());
    for (size_t i = 0; i < core_->plan().profiles.size(); ++i) {
      const MemoryLimit* limit = core_->engine->memory_limit(i);
      if (!limit) return -1;
      most = std::max(most, static_cast<int64_t>(limit->total()));
    }
    return most;
  });
}

Result<size_t> CudaEngine::check_profile(int32_t index) const {
  if (index >= 0 && index < getNbOptimizationProfiles()) return static_cast<size_t>(index);
  return fail(ErrorCode::invalid_argument, "profile {} does not exist: the engine has {}", index,
              getNbOptimizationProfiles());
}

int64_t CudaEngine::getEngineStat(nv::EngineStat stat) const noexcept {
  return guarded(*core_->reporter, "ICudaEngine::getEngineStat", int64_t{-1}, [&]() -> Result<int64_t> {
    switch (stat) {
      case nv::EngineStat::kTOTAL_WEIGHTS_SIZE:
        return static_cast<int64_t>(core_->plan().weights_bytes() + core_->plan().stripped_bytes());
      case nv::EngineStat::kSTRIPPED_WEIGHTS_SIZE:
        return core_->plan().is_stripped() ? static_cast<int64_t>(core_->plan().stripped_bytes()) : -1;
    }
    return fail(ErrorCode::invalid_argument, "there is no statistic {}", static_cast<int>(stat));
  });
}

}  // namespace lathe::api
