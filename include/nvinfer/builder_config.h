// SPDX-License-Identifier: Apache-2.0
// Timing cache, progress monitor and builder configuration. Include NvInfer.h instead.
#ifndef NVINFER_BUILDER_CONFIG_H
#define NVINFER_BUILDER_CONFIG_H

#include "nvinfer/network.h"
#if NV_TENSORRT_MAJOR < 11
#include "nvinfer/algorithm_selector.h"
#include "nvinfer/calibration.h"
#endif

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

namespace v_1_0 {

struct TimingCacheKey {
  uint8_t data[16];
};

struct TimingCacheValue {
  uint64_t tacticHash;  // identifies the chosen tactic
  float timingMSec;

  static constexpr uint64_t kINVALID_TACTIC_HASH = UINT64_MAX;
};

}  // namespace v_1_0

using TimingCacheKey = v_1_0::TimingCacheKey;
using TimingCacheValue = v_1_0::TimingCacheValue;

// Times measured by builds, so that later builds need not measure again. The caller deletes it; it must outlive the
// builds that use it. Not thread-safe.
class ITimingCache : public INoCopy {
 public:
  virtual ~ITimingCache() noexcept = 0;

  // The caller deletes the result.
  IHostMemory* serialize() const noexcept { return mImpl->serialize(); }

  // Adds entries of another cache; existing ones win. False when versions or devices differ, unless ignoreMismatch.
  bool combine(const ITimingCache& inputCache, bool ignoreMismatch) noexcept {
    return mImpl->combine(inputCache, ignoreMismatch);
  }

  bool reset() noexcept { return mImpl->reset(); }

  // Fills in up to `capacity` keys and returns how many there are; -1 on error.
  int64_t queryKeys(TimingCacheKey* keyBuffer, int64_t capacity) const noexcept {
    return mImpl->queryKeys(keyBuffer, capacity);
  }

  // tacticHash is kINVALID_TACTIC_HASH when there is no such entry.
  TimingCacheValue query(const TimingCacheKey& key) const noexcept { return mImpl->query(key); }

  // With BuilderFlag::kEDITABLE_TIMING_CACHE: forces a tactic.
  bool update(const TimingCacheKey& key, const TimingCacheValue& value) noexcept { return mImpl->update(key, value); }

 protected:
  apiv::VTimingCache* mImpl;
};
inline ITimingCache::~ITimingCache() noexcept = default;

namespace v_1_0 {

// Told about the progress of a build, from several threads. Phases nest.
class IProgressMonitor : public IVersionedInterface {
 public:
  IProgressMonitor() = default;
  virtual ~IProgressMonitor() noexcept = default;

  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"IProgressMonitor", 1, 0}; }

  // `parentPhase` is nullptr for outermost phases.
  virtual void phaseStart(const char* phaseName, const char* parentPhase, int32_t nbSteps) noexcept = 0;

  // False asks the builder to give up soon.
  virtual bool stepComplete(const char* phaseName, int32_t step) noexcept = 0;

  // Also called for phases that did not complete all steps.
  virtual void phaseFinish(const char* phaseName) noexcept = 0;
};

}  // namespace v_1_0

using IProgressMonitor = v_1_0::IProgressMonitor;

// How a network is built. Setters copy what they get unless said otherwise; invalid values are reported and change
// nothing. The caller deletes it after the build.
class IBuilderConfig : public INoCopy {
 public:
  virtual ~IBuilderConfig() noexcept = 0;

  // Runs per timing; 1 by default.
  virtual void setAvgTimingIterations(int32_t avgTiming) noexcept { mImpl->setAvgTimingIterations(avgTiming); }
  int32_t getAvgTimingIterations() const noexcept { return mImpl->getAvgTimingIterations(); }

  void setEngineCapability(EngineCapability capability) noexcept { mImpl->setEngineCapability(capability); }
  EngineCapability getEngineCapability() const noexcept { return mImpl->getEngineCapability(); }

  // Bit i stands for BuilderFlag i. Only kTF32 is set by default.
  void setFlags(BuilderFlags builderFlags) noexcept { mImpl->setFlags(builderFlags); }
  BuilderFlags getFlags() const noexcept { return mImpl->getFlags(); }
  void clearFlag(BuilderFlag builderFlag) noexcept { mImpl->clearFlag(builderFlag); }
  void setFlag(BuilderFlag builderFlag) noexcept { mImpl->setFlag(builderFlag); }
  bool getFlag(BuilderFlag builderFlag) const noexcept { return mImpl->getFlag(builderFlag); }

  // Accepted for compatibility; there are no DLA cores.
  void setDeviceType(const ILayer* layer, DeviceType deviceType) noexcept { mImpl->setDeviceType(layer, deviceType); }
  DeviceType getDeviceType(const ILayer* layer) const noexcept { return mImpl->getDeviceType(layer); }
  bool isDeviceTypeSet(const ILayer* layer) const noexcept { return mImpl->isDeviceTypeSet(layer); }
  void resetDeviceType(const ILayer* layer) noexcept { mImpl->resetDeviceType(layer); }

  // Always false.
  bool canRunOnDLA(const ILayer* layer) const noexcept { return mImpl->canRunOnDLA(layer); }

  void setDLACore(int32_t dlaCore) noexcept { mImpl->setDLACore(dlaCore); }
  int32_t getDLACore() const noexcept { return mImpl->getDLACore(); }

  void setDefaultDeviceType(DeviceType deviceType) noexcept { mImpl->setDefaultDeviceType(deviceType); }
  DeviceType getDefaultDeviceType() const noexcept { return mImpl->getDefaultDeviceType(); }

  void reset() noexcept { mImpl->reset(); }

  // The stream to measure on. It is synchronized before the build returns.
  void setProfileStream(const cudaStream_t stream) noexcept { mImpl->setProfileStream(stream); }
  cudaStream_t getProfileStream() const noexcept { return mImpl->getProfileStream(); }

  // Its index, or -1 when invalid. The profile stays owned by the builder.
  int32_t addOptimizationProfile(const IOptimizationProfile* profile) noexcept {
    return mImpl->addOptimizationProfile(profile);
  }
  int32_t getNbOptimizationProfiles() const noexcept { return mImpl->getNbOptimizationProfiles(); }

  // How much the engine inspector can tell; kLAYER_NAMES_ONLY by default.
  void setProfilingVerbosity(ProfilingVerbosity verbosity) noexcept { mImpl->setProfilingVerbosity(verbosity); }
  ProfilingVerbosity getProfilingVerbosity() const noexcept { return mImpl->getProfilingVerbosity(); }

  // Bit i stands for TacticSource i.
  bool setTacticSources(TacticSources tacticSources) noexcept { return mImpl->setTacticSources(tacticSources); }
  TacticSources getTacticSources() const noexcept { return mImpl->getTacticSources(); }

  // An empty cache when size is 0; nullptr when the bytes are invalid. The caller deletes it.
  ITimingCache* createTimingCache(const void* blob, std::size_t size) const noexcept {
    return mImpl->createTimingCache(blob, size);
  }

  // Not owned. False when it comes from another version or device, unless ignoreMismatch.
  bool setTimingCache(const ITimingCache& cache, bool ignoreMismatch) noexcept {
    return mImpl->setTimingCache(cache, ignoreMismatch);
  }
  const ITimingCache* getTimingCache() const noexcept { return mImpl->getTimingCache(); }

  // Bytes; SIZE_MAX, the default, is no limit.
  void setMemoryPoolLimit(MemoryPoolType pool, std::size_t poolSize) noexcept {
    mImpl->setMemoryPoolLimit(pool, poolSize);
  }
  std::size_t getMemoryPoolLimit(MemoryPoolType pool) const noexcept { return mImpl->getMemoryPoolLimit(pool); }

  void setPreviewFeature(PreviewFeature feature, bool enable) noexcept { mImpl->setPreviewFeature(feature, enable); }
  bool getPreviewFeature(PreviewFeature feature) const noexcept { return mImpl->getPreviewFeature(feature); }

  // 0 (fastest build) to 5 (fastest engine); 3 by default.
  void setBuilderOptimizationLevel(int32_t level) noexcept { mImpl->setBuilderOptimizationLevel(level); }
  int32_t getBuilderOptimizationLevel() noexcept { return mImpl->getBuilderOptimizationLevel(); }

  void setHardwareCompatibilityLevel(HardwareCompatibilityLevel hardwareCompatibilityLevel) noexcept {
    mImpl->setHardwareCompatibilityLevel(hardwareCompatibilityLevel);
  }
  HardwareCompatibilityLevel getHardwareCompatibilityLevel() const noexcept {
    return mImpl->getHardwareCompatibilityLevel();
  }

  // Plugin libraries to store in the plan.
  void setPluginsToSerialize(const char* const* paths, int32_t nbPaths) noexcept {
    mImpl->setPluginsToSerialize(paths, nbPaths);
  }
  const char* getPluginToSerialize(int32_t index) const noexcept { return mImpl->getPluginToSerialize(index); }
  int32_t getNbPluginsToSerialize() const noexcept { return mImpl->getNbPluginsToSerialize(); }

  // False when negative.
#if NV_TENSORRT_MAJOR >= 11
  bool setMaxAuxStreams(int32_t nbStreams) noexcept { return mImpl->setMaxAuxStreams(nbStreams); }
#else
  void setMaxAuxStreams(int32_t nbStreams) noexcept { mImpl->setMaxAuxStreams(nbStreams); }
#endif
  int32_t getMaxAuxStreams() const noexcept { return mImpl->getMaxAuxStreams(); }

  // Not owned; nullptr detaches.
  void setProgressMonitor(IProgressMonitor* monitor) noexcept { mImpl->setProgressMonitor(monitor); }
  IProgressMonitor* getProgressMonitor() const noexcept { return mImpl->getProgressMonitor(); }

  void setRuntimePlatform(RuntimePlatform runtimePlatform) noexcept { mImpl->setRuntimePlatform(runtimePlatform); }
  RuntimePlatform getRuntimePlatform() const noexcept { return mImpl->getRuntimePlatform(); }

  // How many tactics are timed per choice; -1 leaves it to the builder.
  void setMaxNbTactics(int32_t maxNbTactics) noexcept { mImpl->setMaxNbTactics(maxNbTactics); }
  int32_t getMaxNbTactics() const noexcept { return mImpl->getMaxNbTactics(); }

  bool setTilingOptimizationLevel(TilingOptimizationLevel level) noexcept {
    return mImpl->setTilingOptimizationLevel(level);
  }
  TilingOptimizationLevel getTilingOptimizationLevel() const noexcept { return mImpl->getTilingOptimizationLevel(); }

  // Bytes.
  bool setL2LimitForTiling(int64_t size) noexcept { return mImpl->setL2LimitForTiling(size); }
  int64_t getL2LimitForTiling() const noexcept { return mImpl->getL2LimitForTiling(); }

  // Not supported: returns false.
  bool setRemoteAutoTuningConfig(const char* config) noexcept { return mImpl->setRemoteAutoTuningConfig(config); }
  const char* getRemoteAutoTuningConfig() const noexcept { return mImpl->getRemoteAutoTuningConfig(); }

#if NV_TENSORRT_MAJOR >= 11
  // JSON list of tuning knobs; "" for none. False when malformed.
  bool setBuildRoute(const char* buildRoute) noexcept { return mImpl->setBuildRoute(buildRoute); }
  const char* getBuildRoute() const noexcept { return mImpl->getBuildRoute(); }

  // All knobs and their values, as JSON.
  const char* getAllBuildRoutes() const noexcept { return mImpl->getAllBuildRoutes(); }
#endif

#if NV_TENSORRT_MAJOR < 11
  // With BuilderFlag::kINT8, of networks without quantize layers: asked during the build for the ranges of tensors that
  // convolutions and matrix products read, or for a cache of them. Must outlive the build.
  // INetworkDefinition::addQuantize() replaces it.
  TRT_DEPRECATED void setInt8Calibrator(IInt8Calibrator* calibrator) noexcept { mImpl->setInt8Calibrator(calibrator); }
  TRT_DEPRECATED IInt8Calibrator* getInt8Calibrator() const noexcept { return mImpl->getInt8Calibrator(); }

  // Without effect. ITimingCache::update() replaces it.
  TRT_DEPRECATED void setAlgorithmSelector(IAlgorithmSelector* selector) noexcept {
    mImpl->setAlgorithmSelector(selector);
  }
  TRT_DEPRECATED IAlgorithmSelector* getAlgorithmSelector() const noexcept { return mImpl->getAlgorithmSelector(); }

  // Its kOPT sizes are those of the calibrator's batches; nullptr = those of the first optimization profile. Must
  // outlive the build.
  TRT_DEPRECATED bool setCalibrationProfile(const IOptimizationProfile* profile) noexcept {
    return mImpl->setCalibrationProfile(profile);
  }
  TRT_DEPRECATED const IOptimizationProfile* getCalibrationProfile() noexcept { return mImpl->getCalibrationProfile(); }

  // Bit i stands for QuantizationFlag i. Networks are always calibrated before their layers are fused.
  TRT_DEPRECATED void setQuantizationFlags(QuantizationFlags flags) noexcept { mImpl->setQuantizationFlags(flags); }
  TRT_DEPRECATED QuantizationFlags getQuantizationFlags() const noexcept { return mImpl->getQuantizationFlags(); }
  TRT_DEPRECATED void clearQuantizationFlag(QuantizationFlag flag) noexcept { mImpl->clearQuantizationFlag(flag); }
  TRT_DEPRECATED void setQuantizationFlag(QuantizationFlag flag) noexcept { mImpl->setQuantizationFlag(flag); }
  TRT_DEPRECATED bool getQuantizationFlag(QuantizationFlag flag) const noexcept {
    return mImpl->getQuantizationFlag(flag);
  }
#endif

 protected:
  apiv::VBuilderConfig* mImpl;
};
inline IBuilderConfig::~IBuilderConfig() noexcept = default;

}  // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif  // NVINFER_BUILDER_CONFIG_H
