// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/builder_core.h"
#include "api/timing_cache.h"
#include "device/cuda/toolchain.h"
#include "lathe.h"
#include "passes/pass.h"

namespace lathe::api {

// A record of settings; build() reads it.
class BuilderConfig final : public nv::IBuilderConfig, public nv::apiv::VBuilderConfig {
 public:
  explicit BuilderConfig(std::shared_ptr<BuilderCore> core);
  ~BuilderConfig() noexcept override = default;

  const std::vector<const OptimizationProfile*>& profiles() const { return profiles_; }
  bool has(nv::BuilderFlag flag) const { return flags_ & bit_of(flag); }
  Exclusive& use() const { return use_; }
  bool has(nv::TacticSource source) const { return tactic_sources_ & bit_of(source); }

  // Lathe's own settings; see lathe.h.
  double budget_seconds = -1;
  std::string target = "cpu";
  int32_t cpu_threads = 0;
  cuda::ToolchainOptions toolchain;  // for device code
  DType precision = DType::f32;      // what f32 may be narrowed to
  bool int8 = false;                 // a quantised network is expected
  PrecisionConstraints constraints = PrecisionConstraints::kNONE;
  std::vector<PrecisionPin> layer_types;  // by name or pattern; the later ones win

  void setAvgTimingIterations(int32_t avgTiming) noexcept override;
  int32_t getAvgTimingIterations() const noexcept override { return avg_timing_; }
  void setEngineCapability(nv::EngineCapability capability) noexcept override { capability_ = capability; }
  nv::EngineCapability getEngineCapability() const noexcept override { return capability_; }
  void setFlags(nv::BuilderFlags builderFlags) noexcept override { flags_ = builderFlags; }
  nv::BuilderFlags getFlags() const noexcept override { return flags_; }
  void clearFlag(nv::BuilderFlag builderFlag) noexcept override { flags_ &= ~bit_of(builderFlag); }
  void setFlag(nv::BuilderFlag builderFlag) noexcept override { flags_ |= bit_of(builderFlag); }
  bool getFlag(nv::BuilderFlag builderFlag) const noexcept override { return has(builderFlag); }
  void setDeviceType(const nv::ILayer*, nv::DeviceType) noexcept override {}
  nv::DeviceType getDeviceType(const nv::ILayer*) const noexcept override { return default_device_; }
  bool isDeviceTypeSet(const nv::ILayer*) const noexcept override { return false; }
  void resetDeviceType(const nv::ILayer*) noexcept override {}
  bool canRunOnDLA(const nv::ILayer*) const noexcept override { return false; }
  void setDLACore(int32_t dlaCore) noexcept override { dla_core_ = dlaCore; }
  int32_t getDLACore() const noexcept override { return dla_core_; }
  void setDefaultDeviceType(nv::DeviceType deviceType) noexcept override { default_device_ = deviceType; }
  nv::DeviceType getDefaultDeviceType() const noexcept override { return default_device_; }
  void reset() noexcept override;
  void setProfileStream(const cudaStream_t stream) noexcept override { profile_stream_ = stream; }
  cudaStream_t getProfileStream() const noexcept override { return profile_stream_; }
  int32_t addOptimizationProfile(const nv::IOptimizationProfile* profile) noexcept override;
  int32_t getNbOptimizationProfiles() const noexcept override { return static_cast<int32_t>(profiles_.size()); }
  void setProfilingVerbosity(nv::ProfilingVerbosity verbosity) noexcept override { verbosity_ = verbosity; }
  nv::ProfilingVerbosity getProfilingVerbosity() const noexcept override { return verbosity_; }
  bool setTacticSources(nv::TacticSources tacticSources) noexcept override;
  nv::TacticSources getTacticSources() const noexcept override { return tactic_sources_; }
  nv::ITimingCache* createTimingCache(const void* blob, std::size_t size) const noexcept override;
  bool setTimingCache(const nv::ITimingCache& cache, bool ignoreMismatch) noexcept override;
  const nv::ITimingCache* getTimingCache() const noexcept override { return timing_cache_; }
  void setMemoryPoolLimit(nv::MemoryPoolType pool, std::size_t poolSize) noexcept override;
  std::size_t getMemoryPoolLimit(nv::MemoryPoolType pool) const noexcept override;
  void setPreviewFeature(nv::PreviewFeature feature, bool enable) noexcept override;
  bool getPreviewFeature(nv::PreviewFeature feature) const noexcept override { return preview_ & bit_of(feature); }
  void setBuilderOptimizationLevel(int32_t level) noexcept override;
  int32_t getBuilderOptimizationLevel() const noexcept override { return level_; }
  void setHardwareCompatibilityLevel(nv::HardwareCompatibilityLevel level) noexcept override { compatibility_ = level; }
  nv::HardwareCompatibilityLevel getHardwareCompatibilityLevel() const noexcept override { return compatibility_; }
  void setPluginsToSerialize(const char* const* paths, int32_t nbPaths) noexcept override;
  const char* getPluginToSerialize(int32_t index) const noexcept override;
  int32_t getNbPluginsToSerialize() const noexcept override { return static_cast<int32_t>(plugins_.size()); }
  bool setMaxAuxStreams(int32_t nbStreams) noexcept override;
  int32_t getMaxAuxStreams() const noexcept override { return aux_streams_; }
  void setProgressMonitor(nv::IProgressMonitor* monitor) noexcept override { monitor_ = monitor; }
  nv::IProgressMonitor* getProgressMonitor() const noexcept override { return monitor_; }
  void setRuntimePlatform(nv::RuntimePlatform runtimePlatform) noexcept override { platform_ = runtimePlatform; }
  nv::RuntimePlatform getRuntimePlatform() const noexcept override { return platform_; }
  void setMaxNbTactics(int32_t maxNbTactics) noexcept override { max_tactics_ = maxNbTactics; }
  int32_t getMaxNbTactics() const noexcept override { return max_tactics_; }
  bool setTilingOptimizationLevel(nv::TilingOptimizationLevel level) noexcept override {
    tiling_ = level;
    return true;
  }
  nv::TilingOptimizationLevel getTilingOptimizationLevel() const noexcept override { return tiling_; }
  bool setL2LimitForTiling(int64_t size) noexcept override;
  int64_t getL2LimitForTiling() const noexcept override { return l2_limit_; }
  bool setRemoteAutoTuningConfig(const char* config) noexcept override;
  const char* getRemoteAutoTuningConfig() const noexcept override { return ""; }
  bool setBuildRoute(const char* buildRoute) noexcept override;
  const char* getBuildRoute() const noexcept override { return ""; }
  const char* getAllBuildRoutes() const noexcept override { return "[]"; }

 private:
  std::shared_ptr<BuilderCore> core_;
  mutable Exclusive use_{"builder configuration"};
  Entry entry() const { return {*core_->reporter, use_}; }

  std::vector<const OptimizationProfile*> profiles_;
  std::vector<std::string> plugins_;
  const nv::ITimingCache* timing_cache_ = nullptr;
  nv::IProgressMonitor* monitor_ = nullptr;
  cudaStream_t profile_stream_ = nullptr;
  nv::BuilderFlags flags_ = bit_of(nv::BuilderFlag::kTF32);
  nv::TacticSources tactic_sources_ =
      bit_of(nv::TacticSource::kEDGE_MASK_CONVOLUTIONS) | bit_of(nv::TacticSource::kJIT_CONVOLUTIONS);
  uint32_t preview_ = 0;
  std::size_t pools_[nv::EnumMax<nv::MemoryPoolType>()];
  nv::EngineCapability capability_ = nv::EngineCapability::kSTANDARD;
  nv::DeviceType default_device_ = nv::DeviceType::kGPU;
  nv::ProfilingVerbosity verbosity_ = nv::ProfilingVerbosity::kLAYER_NAMES_ONLY;
  nv::HardwareCompatibilityLevel compatibility_ = nv::HardwareCompatibilityLevel::kNONE;
  nv::RuntimePlatform platform_ = nv::RuntimePlatform::kSAME_AS_BUILD;
  nv::TilingOptimizationLevel tiling_ = nv::TilingOptimizationLevel::kNONE;
  int32_t avg_timing_ = 1, dla_core_ = -1, level_ = 3, aux_streams_ = 0, max_tactics_ = -1;
  int64_t l2_limit_ = -1;
};

}  // namespace lathe::api
