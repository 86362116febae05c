// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "api/runtime/cache_file.h"
#include "api/runtime/context_settings.h"
#include "api/runtime/runtime.h"
#include "api/runtime/serialization_config.h"
#include "runtime/engine.h"
#include "shape/memory_format.h"

namespace lathe::api {

// What an engine shares with its contexts and inspectors, and what therefore outlives it.
struct EngineCore {
  ~EngineCore() { save_kernels(); }

  std::shared_ptr<RuntimeCore> runtime;
  std::shared_ptr<Reporter> reporter;
  std::shared_ptr<const Engine> engine;
  std::shared_ptr<CacheFile> cache_file;  // null = none
  plan::HardwareCompatibility hardware_compatibility = plan::HardwareCompatibility::none;
  SettingNotices notices;
  std::atomic<nv::ICudaEngine*> facade{nullptr};  // null once the application deleted it

  // What compiled kernels depend on besides what they are made of; fails where the engine is for inspection only.
  Result<std::string> cache_environment() const;
  // Fails with invalid_argument where the cache is for another environment.
  Result<> check_cache(const KernelCache& cache) const;
  // Loads the file that the runtime names, if it does, and makes all kernels.
  Result<> open_cache_file(RuntimeCore& runtime);
  // Code that was compiled since the last time goes into the cache's file; a failure is a warning.
  void save_kernels() noexcept;
  // All of the engine's kernels, with the help of this cache, or else of the file's.
  Result<> make_kernels(KernelCache* cache = nullptr) const;
  // The file's cache; null = there is no file.
  std::shared_ptr<KernelCache> file_kernels() const {
    return cache_file ? std::shared_ptr<KernelCache>(cache_file, &cache_file->kernels()) : nullptr;
  }

  // Shape inputs' values in each profile, by binding and selector, for getProfileTensorValuesV2.
  std::vector<std::array<std::vector<int64_t>, 3>> profile_values(size_t profile) const;
  const plan::Plan& plan() const { return engine->plan(); }
  // Bindings that the application sees; debug tensors that are no outputs come behind them.
  size_t num_io() const { return plan().bindings.size() - num_hidden; }
  size_t num_hidden = 0;
  const plan::Binding& binding(int i) const { return plan().bindings[static_cast<size_t>(i)]; }
  int find_io(const char* name) const;  // the binding's index; -1 = none
  const plan::TensorDesc& tensor(int i) const { return plan().tensors[binding(i).tensor]; }
  // Of inputs and outputs that are not row-major, which have other dimensions in memory than the application sees.
  Result<> find_formats();
  const MemoryFormat* format(int i) const;  // null = row-major
  Dims in_network(size_t binding, Dims dims) const;
  Result<Dims> in_memory(size_t binding, const Dims& dims) const;
  Dims strides(size_t binding, const Dims& in_memory) const;  // in the network's order
  std::vector<std::optional<MemoryFormat>> formats;           // by binding
  std::vector<std::string> format_words;                      // likewise: getTensorFormatDesc()
};

class CudaEngine final : public nv::ICudaEngine, public nv::apiv::VCudaEngine {
 public:
  // `bytes` are used where they lie while `owner` lives; without an owner what is needed of them is copied, and so it
  // is of plans for a GPU, which need neither afterwards.
  static Result<nv::ICudaEngine*> load(std::shared_ptr<RuntimeCore> runtime, std::span<const std::byte> bytes,
                                       std::shared_ptr<const void> owner = {});
  explicit CudaEngine(std::shared_ptr<EngineCore> core);
  ~CudaEngine() noexcept override;

  const std::shared_ptr<EngineCore>& core() const { return core_; }

  nv::ICudaEngine* getPImpl() noexcept override { return this; }
  int32_t getNbLayers() const noexcept override { return static_cast<int32_t>(core_->plan().steps.size()); }
  nv::IHostMemory* serialize() const noexcept override;
  nv::IExecutionContext* createExecutionContext(nv::ExecutionContextAllocationStrategy strategy) noexcept override;
  bool isRefittable() const noexcept override { return core_->plan().refit.kind != plan::RefitKind::none; }
  const char* getName() const noexcept override { return core_->plan().name.c_str(); }
  int32_t getNbOptimizationProfiles() const noexcept override {
    return static_cast<int32_t>(core_->plan().profiles.size());
  }
  nv::EngineCapability getEngineCapability() const noexcept override { return nv::EngineCapability::kSTANDARD; }
  void setErrorRecorder(nv::IErrorRecorder* recorder) noexcept override { core_->reporter->set_recorder(recorder); }
  nv::IErrorRecorder* getErrorRecorder() const noexcept override { return core_->reporter->recorder(); }
  nv::TacticSources getTacticSources() const noexcept override;
  nv::ProfilingVerbosity getProfilingVerbosity() const noexcept override;
  nv::IEngineInspector* createEngineInspector() const noexcept override;
  nv::Dims getTensorShape(const char* tensorName) const noexcept override;
  nv::DataType getTensorDataType(const char* tensorName) const noexcept override;
  nv::TensorLocation getTensorLocation(const char* tensorName) const noexcept override;
  bool isShapeInferenceIO(const char* tensorName) const noexcept override;
  nv::TensorIOMode getTensorIOMode(const char* tensorName) const noexcept override;
  int32_t getTensorBytesPerComponent(const char* tensorName) const noexcept override;
  int32_t getTensorComponentsPerElement(const char* tensorName) const noexcept override;
  nv::TensorFormat getTensorFormat(const char* tensorName) const noexcept override;
  const char* getTensorFormatDesc(const char* tensorName) const noexcept override;
  int32_t getTensorVectorizedDim(const char* tensorName) const noexcept override;
  nv::Dims getProfileShape(const char* tensorName, int32_t profileIndex,
                           nv::OptProfileSelector select) const noexcept override;
  int32_t getNbIOTensors() const noexcept override { return static_cast<int32_t>(core_->num_io()); }
  const char* getIOTensorName(int32_t index) const noexcept override;
  nv::HardwareCompatibilityLevel getHardwareCompatibilityLevel() const noexcept override {
    return static_cast<nv::HardwareCompatibilityLevel>(core_->hardware_compatibility);
  }
  int32_t getNbAuxStreams() const noexcept override { return static_cast<int32_t>(core_->plan().auxiliary_streams()); }
  int32_t getTensorBytesPerComponentV2(const char* tensorName, int32_t profileIndex) const noexcept override;
  int32_t getTensorComponentsPerElementV2(const char* tensorName, int32_t profileIndex) const noexcept override;
  nv::TensorFormat getTensorFormatV2(const char* tensorName, int32_t profileIndex) const noexcept override;
  const char* getTensorFormatDescV2(const char* tensorName, int32_t profileIndex) const noexcept override;
  int32_t getTensorVectorizedDimV2(const char* tensorName, int32_t profileIndex) const noexcept override;
  nv::ISerializationConfig* createSerializationConfig() noexcept override;
  nv::IHostMemory* serializeWithConfig(nv::ISerializationConfig& config) const noexcept override;
  nv::IRefitter* createRefitter(nv::ILogger& logger) noexcept override;
  int64_t getStreamableWeightsSize() const noexcept override;
  bool isDebugTensor(const char* name) const noexcept override;
#if NV_TENSORRT_MAJOR < 11
  nv::IExecutionContext* createExecutionContextWithoutDeviceMemory() noexcept override;
  size_t getDeviceMemorySize() const noexcept override;
  const int32_t* getProfileTensorValues(const char* tensorName, int32_t profileIndex,
                                        nv::OptProfileSelector select) const noexcept override;
  bool hasImplicitBatchDimension() const noexcept override { return false; }
  size_t getDeviceMemorySizeForProfile(int32_t profileIndex) const noexcept override;
  bool setWeightStreamingBudget(int64_t gpuMemoryBudget) noexcept override;
  int64_t getWeightStreamingBudget() const noexcept override;
  int64_t getMinimumWeightStreamingBudget() const noexcept override;
#endif
  bool setWeightStreamingBudgetV2(int64_t gpuMemoryBudget) noexcept override;
  int64_t getWeightStreamingBudgetV2() const noexcept override;
  int64_t getWeightStreamingAutomaticBudget() const noexcept override;
  int64_t getWeightStreamingScratchMemorySize() const noexcept override;
  int64_t getDeviceMemorySizeV2() const noexcept override;
  int64_t getDeviceMemorySizeForProfileV2(int32_t profileIndex) const noexcept override;
  const int64_t* getProfileTensorValuesV2(const char* tensorName, int32_t profileIndex,
                                          nv::OptProfileSelector select) const noexcept override;
  nv::IExecutionContext* createExecutionContextWithRuntimeConfig(nv::IRuntimeConfig* runtimeConfig) noexcept override;
  nv::IRuntimeConfig* createRuntimeConfig() noexcept override;
  int64_t getEngineStat(nv::EngineStat stat) const noexcept override;
  const char* getAliasedInputTensor(const char* tensorName) const noexcept override;

 private:
  // The binding's index, or -1 with one report.
  int find(const char* where, const char* name) const noexcept;
  int find(const char* where, const char* name, int32_t profile) const noexcept;
  Result<size_t> index_of(const char* name) const;
  int32_t vector_of(int binding) const;
  nv::TensorFormat format_of(int binding) const;
  Result<size_t> check_profile(int32_t index) const;
  nv::IExecutionContext* make_context(const char* where, const ContextSettings& settings) noexcept;

  std::shared_ptr<EngineCore> core_;
  std::vector<std::vector<std::array<std::vector<int64_t>, 3>>> profile_values_;  // by profile
#if NV_TENSORRT_MAJOR < 11
  mutable std::mutex narrow_mutex_;
  mutable std::map<const int64_t*, std::vector<int32_t>> narrow_values_;  // what getProfileTensorValues() hands out
#endif
};

}  // namespace lathe::api
