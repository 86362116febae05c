// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/builder/timing_cache.h"
#include "api/network/builder_core.h"
#include "api/settings.h"
#include "device/compiler_options.h"
#include "device/family.h"
#include "lathe.h"
#include "passes/pass.h"
#include "plan/shared_weights.h"
#include "quantization/calibration_cache.h"

namespace lathe::api {

// Lathe's own settings; see lathe.h.
struct OwnSettings {
  double budget_seconds = -1;
  int64_t host_budget = 0;  // bytes; 0 = no limit
  DefaultTarget target = default_target();
  std::vector<std::string> more_targets;           // the plan has a variant for each, too
  plan::Sharing sharing = plan::Sharing::derived;  // of the weights of variants
  int32_t cpu_threads = 0;
  CompilerOptions toolchain;     // for device code
  DType precision = DType::f32;  // what f32 may be narrowed to
  bool bf16_too = false;         // or else to bf16
  bool int8 = false;             // a quantised network is expected
  bool forces_sparsity = false;  // weights are pruned to be 2:4 sparse
  TensorScales calibration;      // of a float network
  PrecisionConstraints constraints = PrecisionConstraints::kNONE;
  std::vector<PrecisionPin> layer_types;  // by name or pattern; the later ones win
  std::string pass_dump;                  // a folder
  std::vector<std::string> skipped_passes;
};

// A record of settings; build() reads it.
class BuilderConfig final : public nv::IBuilderConfig, public nv::apiv::VBuilderConfig, public OwnSettings {
 public:
  explicit BuilderConfig(std::shared_ptr<BuilderCore> core);
  ~BuilderConfig() noexcept override = default;

  const std::vector<const OptimizationProfile*>& profiles() const { return profiles_; }
  const std::vector<std::string>& plugins() const { return plugins_; }  // paths of libraries to be serialized
  Exclusive& use() const { return use_; }
  // For a build, which holds use() while it asks.
  size_t pool_limit(nv::MemoryPoolType pool) const {
    return values_.pools[static_cast<size_t>(pool)].value_or(SIZE_MAX);
  }
  bool is_limited(nv::MemoryPoolType pool) const { return values_.pools[static_cast<size_t>(pool)].has_value(); }
  bool has(nv::BuilderFlag flag) const { return values_.flags & bit_of(flag); }
  bool has(nv::TacticSource source) const { return values_.tactic_sources & bit_of(source); }

  void setAvgTimingIterations(int32_t avgTiming) noexcept override;
  int32_t getAvgTimingIterations() const noexcept override { return values_.avg_timing; }
  void setEngineCapability(nv::EngineCapability capability) noexcept override;
  nv::EngineCapability getEngineCapability() const noexcept override { return values_.capability; }
  void setFlags(nv::BuilderFlags builderFlags) noexcept override;
  nv::BuilderFlags getFlags() const noexcept override { return values_.flags; }
  void clearFlag(nv::BuilderFlag builderFlag) noexcept override;
  void setFlag(nv::BuilderFlag builderFlag) noexcept override;
  bool getFlag(nv::BuilderFlag builderFlag) const noexcept override { return has(builderFlag); }
  void setDeviceType(const nv::ILayer* layer, nv::DeviceType deviceType) noexcept override;
  nv::DeviceType getDeviceType(const nv::ILayer*) const noexcept override { return values_.default_device; }
  bool isDeviceTypeSet(const nv::ILayer* layer) const noexcept override { return device_set_.contains(layer); }
  void resetDeviceType(const nv::ILayer* layer) noexcept override { device_set_.erase(layer); }
  bool canRunOnDLA(const nv::ILayer*) const noexcept override { return false; }
  void setDLACore(int32_t dlaCore) noexcept override;
  int32_t getDLACore() const noexcept override { return values_.dla_core; }
  void setDefaultDeviceType(nv::DeviceType deviceType) noexcept override;
  nv::DeviceType getDefaultDeviceType() const noexcept override { return values_.default_device; }
  void reset() noexcept override;
  void setProfileStream(const cudaStream_t stream) noexcept override;
  cudaStream_t getProfileStream() const noexcept override { return values_.profile_stream; }
  int32_t addOptimizationProfile(const nv::IOptimizationProfile* profile) noexcept override;
  int32_t getNbOptimizationProfiles() const noexcept override { return static_cast<int32_t>(profiles_.size()); }
  void setProfilingVerbosity(nv::ProfilingVerbosity verbosity) noexcept override;
  nv::ProfilingVerbosity getProfilingVerbosity() const noexcept override { return values_.verbosity; }
  bool setTacticSources(nv::TacticSources tacticSources) noexcept override;
  nv::TacticSources getTacticSources() const noexcept override { return values_.tactic_sources; }
  nv::ITimingCache* createTimingCache(const void* blob, std::size_t size) const noexcept override;
  bool setTimingCache(const nv::ITimingCache& cache, bool ignoreMismatch) noexcept override;
  const nv::ITimingCache* getTimingCache() const noexcept override { return values_.timing_cache; }
  void setMemoryPoolLimit(nv::MemoryPoolType pool, std::size_t poolSize) noexcept override;
  std::size_t getMemoryPoolLimit(nv::MemoryPoolType pool) const noexcept override;
  void setPreviewFeature(nv::PreviewFeature feature, bool enable) noexcept override;
  bool getPreviewFeature(nv::PreviewFeature feature) const noexcept override {
    return values_.preview & bit_of(feature);
  }
  void setBuilderOptimizationLevel(int32_t level) noexcept override;
  int32_t getBuilderOptimizationLevel() const noexcept override { return values_.level; }
  void setHardwareCompatibilityLevel(nv::HardwareCompatibilityLevel level) noexcept override;
  nv::HardwareCompatibilityLevel getHardwareCompatibilityLevel() const noexcept override {
    return values_.compatibility;
  }
  void setPluginsToSerialize(const char* const* paths, int32_t nbPaths) noexcept override;
  const char* getPluginToSerialize(int32_t index) const noexcept override;
  int32_t getNbPluginsToSerialize() const noexcept override { return static_cast<int32_t>(plugins_.size()); }
  bool setMaxAuxStreams(int32_t nbStreams) noexcept override;
  int32_t getMaxAuxStreams() const noexcept override { return values_.aux_streams; }
  void setProgressMonitor(nv::IProgressMonitor* monitor) noexcept override { values_.monitor = monitor; }
  nv::IProgressMonitor* getProgressMonitor() const noexcept override { return values_.monitor; }
  void setRuntimePlatform(nv::RuntimePlatform runtimePlatform) noexcept override;
  nv::RuntimePlatform getRuntimePlatform() const noexcept override { return values_.platform; }
  void setMaxNbTactics(int32_t maxNbTactics) noexcept override;
  int32_t getMaxNbTactics() const noexcept override { return values_.max_tactics; }
  bool setTilingOptimizationLevel(nv::TilingOptimizationLevel level) noexcept override;
  nv::TilingOptimizationLevel getTilingOptimizationLevel() const noexcept override { return values_.tiling; }
  bool setL2LimitForTiling(int64_t size) noexcept override;
  int64_t getL2LimitForTiling() const noexcept override { return values_.l2_limit; }
  bool setRemoteAutoTuningConfig(const char* config) noexcept override;
  const char* getRemoteAutoTuningConfig() const noexcept override { return ""; }
  bool setBuildRoute(const char* buildRoute) noexcept override;
  const char* getBuildRoute() const noexcept override { return ""; }
  const char* getAllBuildRoutes() const noexcept override { return "[]"; }
#if NV_TENSORRT_MAJOR < 11
  void setInt8Calibrator(nv::IInt8Calibrator* calibrator) noexcept override;
  nv::IInt8Calibrator* getInt8Calibrator() const noexcept override { return values_.calibrator; }
  void setAlgorithmSelector(nv::IAlgorithmSelector* selector) noexcept override;
  nv::IAlgorithmSelector* getAlgorithmSelector() const noexcept override { return values_.selector; }
  bool setCalibrationProfile(const nv::IOptimizationProfile* profile) noexcept override;
  const nv::IOptimizationProfile* calibration_profile() const { return values_.calibration_profile; }
  const nv::IOptimizationProfile* getCalibrationProfile() noexcept override { return values_.calibration_profile; }
  void setQuantizationFlags(nv::QuantizationFlags flags) noexcept override;
  nv::QuantizationFlags getQuantizationFlags() const noexcept override { return values_.quantization; }
  void clearQuantizationFlag(nv::QuantizationFlag flag) noexcept override;
  void setQuantizationFlag(nv::QuantizationFlag flag) noexcept override;
  bool getQuantizationFlag(nv::QuantizationFlag flag) const noexcept override;
#endif

 private:
  static constexpr size_t kPools = nv::EnumMax<nv::MemoryPoolType>();
  struct Values {
    nv::BuilderFlags flags = bit_of(nv::BuilderFlag::kTF32);
    nv::TacticSources tactic_sources =
        bit_of(nv::TacticSource::kEDGE_MASK_CONVOLUTIONS) | bit_of(nv::TacticSource::kJIT_CONVOLUTIONS);
    uint32_t preview = 0;
    std::array<std::optional<std::size_t>, kPools> pools{};  // null = what there is
    nv::EngineCapability capability = nv::EngineCapability::kSTANDARD;
    nv::DeviceType default_device = nv::DeviceType::kGPU;
    nv::ProfilingVerbosity verbosity = nv::ProfilingVerbosity::kLAYER_NAMES_ONLY;
    nv::HardwareCompatibilityLevel compatibility = nv::HardwareCompatibilityLevel::kNONE;
    nv::RuntimePlatform platform = nv::RuntimePlatform::kSAME_AS_BUILD;
    nv::TilingOptimizationLevel tiling = nv::TilingOptimizationLevel::kNONE;
    int32_t avg_timing = 1, dla_core = -1, level = 3, aux_streams = 0, max_tactics = -1;
    int64_t l2_limit = -1;
    cudaStream_t profile_stream = nullptr;
    const nv::ITimingCache* timing_cache = nullptr;
    nv::IProgressMonitor* monitor = nullptr;
#if NV_TENSORRT_MAJOR < 11
    nv::IInt8Calibrator* calibrator = nullptr;
    nv::IAlgorithmSelector* selector = nullptr;
    const nv::IOptimizationProfile* calibration_profile = nullptr;
    nv::QuantizationFlags quantization = 0;
#endif
  };

  Entry entry() const { return {*core_->reporter, use_}; }
  Log& log() const { return core_->reporter->log(); }
  // Takes a value up, unless settings.def or `check` refuses it.
  template <class T>
  bool put(SettingId id, T Values::*to, std::type_identity_t<T> value, const Result<>& check = {}) noexcept {
    return guarded(entry(), setting_of(id).name, [&]() -> Result<> {
      LATHE_TRY(check);
      if constexpr (std::is_enum_v<T>) LATHE_TRY(notices_.consult(value, log()));
      if (value != Values().*to) LATHE_TRY(notices_.consult(id, log()));
      values_.*to = value;
      return {};
    });
  }
  void put_flags(SettingId id, nv::BuilderFlags flags) noexcept;
  Result<std::size_t> default_limit(nv::MemoryPoolType pool) const;
  Result<> refuse(SettingId id, const char* text, const char* what);

  std::shared_ptr<BuilderCore> core_;
  mutable Exclusive use_{"builder configuration"};
  SettingNotices notices_;
  Values values_;
  std::vector<const OptimizationProfile*> profiles_;
  std::vector<std::string> plugins_;
  std::set<const nv::ILayer*> device_set_;  // layers that setDeviceType() was called for
};

}  // namespace lathe::api
