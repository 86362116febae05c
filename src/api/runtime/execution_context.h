// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/runtime/cache_limit.h"
#include "api/runtime/cuda_engine.h"
#include "api/runtime/debug_tensors.h"
#include "api/runtime/last_engines.h"
#include "runtime/context.h"

namespace lathe::api {

class ExecutionContext final : public nv::IExecutionContext, public nv::apiv::VExecutionContext {
 public:
  static Result<nv::IExecutionContext*> make(std::shared_ptr<EngineCore> core, const ContextSettings& settings);
  ~ExecutionContext() noexcept override = default;

  Context& inner() { return *context_; }
  const Context& inner() const { return *context_; }
  const EngineCore& core() const { return *core_; }

  nv::IExecutionContext* getPImpl() noexcept override { return this; }
  void setDebugSync(bool sync) noexcept override;
  bool getDebugSync() const noexcept override { return context_->hooks.waits_after_steps; }
  void setProfiler(nv::IProfiler* profiler) noexcept override;
  nv::IProfiler* getProfiler() const noexcept override { return profiler_; }
  const nv::ICudaEngine& getEngine() const noexcept override;
  void setName(const char* name) noexcept override;
  const char* getName() const noexcept override { return name_.c_str(); }
  void setDeviceMemory(void* memory) noexcept override;
  int32_t getOptimizationProfile() const noexcept override { return static_cast<int32_t>(context_->profile()); }
  bool allInputDimensionsSpecified() const noexcept override;
#if NV_TENSORRT_MAJOR < 11
  bool allInputShapesSpecified() const noexcept override;
#endif
  void setErrorRecorder(nv::IErrorRecorder* recorder) noexcept override { reporter_.set_recorder(recorder); }
  nv::IErrorRecorder* getErrorRecorder() const noexcept override { return reporter_.recorder(); }
  bool executeV2(void* const* bindings) noexcept override;
  bool setOptimizationProfileAsync(int32_t profileIndex, cudaStream_t stream) noexcept override;
  void setEnqueueEmitsProfile(bool enqueueEmitsProfile) noexcept override { emits_profile_ = enqueueEmitsProfile; }
  bool getEnqueueEmitsProfile() const noexcept override { return emits_profile_; }
  bool reportToProfiler() const noexcept override;
  bool setInputShape(const char* tensorName, const nv::Dims& dims) noexcept override;
  nv::Dims getTensorShape(const char* tensorName) const noexcept override;
  nv::Dims getTensorStrides(const char* tensorName) const noexcept override;
  bool setTensorAddress(const char* tensorName, void* data) noexcept override;
  const void* getTensorAddress(const char* tensorName) const noexcept override;
  bool setInputTensorAddress(const char* tensorName, const void* data) noexcept override;
  bool setOutputTensorAddress(const char* tensorName, void* data) noexcept override;
  int32_t inferShapes(int32_t nbMaxNames, const char** tensorNames) noexcept override;
  bool setInputConsumedEvent(cudaEvent_t event) noexcept override;
  cudaEvent_t getInputConsumedEvent() const noexcept override { return consumed_; }
  void* getOutputTensorAddress(const char* tensorName) const noexcept override;
  bool setOutputAllocator(const char* tensorName, nv::IOutputAllocator* outputAllocator) noexcept override;
  nv::IOutputAllocator* getOutputAllocator(const char* tensorName) noexcept override;
  int64_t getMaxOutputSize(const char* tensorName) const noexcept override;
  bool setTemporaryStorageAllocator(nv::IGpuAllocator* allocator) noexcept override;
  nv::IGpuAllocator* getTemporaryStorageAllocator() const noexcept override { return storage_allocator_; }
  bool enqueueV3(cudaStream_t stream) noexcept override;
  void setPersistentCacheLimit(size_t size) noexcept override;
  size_t getPersistentCacheLimit() const noexcept override { return cache_limit_.bytes(); }
  bool setNvtxVerbosity(nv::ProfilingVerbosity verbosity) noexcept override;
  nv::ProfilingVerbosity getNvtxVerbosity() const noexcept override { return nvtx_; }
  void setAuxStreams(cudaStream_t* auxStreams, int32_t nbStreams) noexcept override;
  bool setDebugListener(nv::IDebugListener* listener) noexcept override;
  nv::IDebugListener* getDebugListener() noexcept override { return debug_->listener(); }
  bool setTensorDebugState(const char* name, bool flag) noexcept override;
  bool getDebugState(const char* name) const noexcept override;
  bool setAllTensorsDebugState(bool flag) noexcept override;
  size_t updateDeviceMemorySizeForShapes() noexcept override;
  void setDeviceMemoryV2(void* memory, int64_t size) noexcept override;
  nv::IRuntimeConfig* getRuntimeConfig() const noexcept override;
  bool setUnfusedTensorsDebugState(bool flag) noexcept override;
  bool getUnfusedTensorsDebugState() const noexcept override { return debug_->unfused(); }
  bool setCommunicator(void* communicator) noexcept override;
  bool isStreamCapturable(cudaStream_t stream) const noexcept override;

 private:
  enum class Role { any, input, output };
  Entry changing() const { return {reporter_, use_}; }
  Entry looking() const { return {reporter_, use_, Exclusive::Call::looks}; }

  explicit ExecutionContext(std::shared_ptr<EngineCore> core)
      : core_(std::move(core)), reporter_(std::shared_ptr<const Reporter>(core_->reporter)) {
    mImpl = this;
  }
  // What settings.def says of setting `id` to another value than its default.
  Result<> consult(SettingId id) { return notices_.consult(id, reporter_.log()); }
  bool put(SettingId id, bool is_default, const std::function<void()>& change) noexcept;
  Result<size_t> find(const char* name, Role role = Role::any) const;
  Result<> set_address(const char* name, void* data, Role role);
  // The dims of a tensor, outputs' computed from the inputs' when those are all known.
  Result<Dims> dims_of(size_t binding) const;
  Result<> run(cudaStream_t stream, bool wait);
  void name_ranges();         // of the steps, where a profiler listens
  bool report_times() const;  // to the profiler; false where there are none

  std::shared_ptr<EngineCore> core_;
  const uint64_t number_ = new_context_number();
  Reporter reporter_;
  mutable Exclusive use_{"context"};
  SettingNotices notices_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<DebugTensors> debug_;  // uses the context
  std::string name_;
  std::vector<nv::IOutputAllocator*> allocators_;  // by binding
  ContextSettings settings_;
  nv::IProfiler* profiler_ = nullptr;
  std::vector<std::optional<double>> times_;  // by step, milliseconds of the last run; empty without a profiler
  nv::IGpuAllocator* storage_allocator_ = nullptr;
  cudaEvent_t consumed_ = nullptr;
  cudaStream_t stream_ = nullptr;  // of the run in progress
  CacheLimit cache_limit_;
  nv::ProfilingVerbosity nvtx_ = nv::ProfilingVerbosity::kLAYER_NAMES_ONLY;
  std::vector<std::string> ranges_;  // NVTX's, by step; empty = none
  bool emits_profile_ = true;
  std::unique_ptr<nv::ICudaEngine> engine_stand_in_;  // for getEngine() once the engine is gone
};

}  // namespace lathe::api
