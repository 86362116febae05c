// SPDX-License-Identifier: Apache-2.0
#include "api/builder/builder_config.h"

#include <unistd.h>

#include <algorithm>

#include "api/runtime/libraries.h"
#include "lathe.h"

namespace lathe::api {

constexpr std::size_t kLeastShared = 48 << 10;  // what every architecture has, and kernels count on

BuilderConfig::BuilderConfig(std::shared_ptr<BuilderCore> core) : core_(std::move(core)) { mImpl = this; }

void BuilderConfig::reset() noexcept {
  values_ = Values();
  static_cast<OwnSettings&>(*this) = OwnSettings();
  profiles_.clear();
  plugins_.clear();
  device_set_.clear();
}

void BuilderConfig::put_flags(SettingId id, nv::BuilderFlags flags) noexcept {
  guarded(entry(), setting_of(id).name, [&]() -> Result<> {
    LATHE_TRY(notices_.consult_flags<nv::BuilderFlag>(flags, Values().flags, log()));
    values_.flags = flags;
    return {};
  });
}

void BuilderConfig::setFlags(nv::BuilderFlags builderFlags) noexcept {
  put_flags(SettingId::IBuilderConfig_setFlags, builderFlags);
}

void BuilderConfig::setFlag(nv::BuilderFlag builderFlag) noexcept {
  put_flags(SettingId::IBuilderConfig_setFlag, values_.flags | bit_of(builderFlag));
}

void BuilderConfig::clearFlag(nv::BuilderFlag builderFlag) noexcept {
  put_flags(SettingId::IBuilderConfig_clearFlag, values_.flags & ~bit_of(builderFlag));
}

void BuilderConfig::setEngineCapability(nv::EngineCapability capability) noexcept {
  put(SettingId::IBuilderConfig_setEngineCapability, &Values::capability, capability);
}

void BuilderConfig::setDeviceType(const nv::ILayer* layer, nv::DeviceType deviceType) noexcept {
  guarded(entry(), "IBuilderConfig::setDeviceType", [&]() -> Result<> {
    if (!layer) return fail(ErrorCode::invalid_argument, "the layer is null");
    LATHE_TRY(notices_.consult(deviceType, log()));
    device_set_.insert(layer);
    return {};
  });
}

void BuilderConfig::setDefaultDeviceType(nv::DeviceType deviceType) noexcept {
  put(SettingId::IBuilderConfig_setDefaultDeviceType, &Values::default_device, deviceType);
}

void BuilderConfig::setDLACore(int32_t dlaCore) noexcept {
  put(SettingId::IBuilderConfig_setDLACore, &Values::dla_core, dlaCore);
}

void BuilderConfig::setProfileStream(const cudaStream_t stream) noexcept {
  put(SettingId::IBuilderConfig_setProfileStream, &Values::profile_stream, stream);
}

void BuilderConfig::setProfilingVerbosity(nv::ProfilingVerbosity verbosity) noexcept {
  put(SettingId::IBuilderConfig_setProfilingVerbosity, &Values::verbosity, verbosity);
}

void BuilderConfig::setHardwareCompatibilityLevel(nv::HardwareCompatibilityLevel level) noexcept {
  put(SettingId::IBuilderConfig_setHardwareCompatibilityLevel, &Values::compatibility, level);
}

void BuilderConfig::setRuntimePlatform(nv::RuntimePlatform runtimePlatform) noexcept {
  put(SettingId::IBuilderConfig_setRuntimePlatform, &Values::platform, runtimePlatform);
}

bool BuilderConfig::setTilingOptimizationLevel(nv::TilingOptimizationLevel level) noexcept {
  return put(SettingId::IBuilderConfig_setTilingOptimizationLevel, &Values::tiling, level);
}

namespace {

Result<> at_least(int64_t value, int64_t least, const char* what) {
  if (value >= least) return {};
  return fail(ErrorCode::config_invalid, "{} {}; at least {} is needed", value, what, least);
}

}  // namespace

void BuilderConfig::setAvgTimingIterations(int32_t avgTiming) noexcept {
  put(SettingId::IBuilderConfig_setAvgTimingIterations, &Values::avg_timing, avgTiming,
      at_least(avgTiming, 1, "iterations"));
}

void BuilderConfig::setMaxNbTactics(int32_t maxNbTactics) noexcept {
  put(SettingId::IBuilderConfig_setMaxNbTactics, &Values::max_tactics, maxNbTactics,
      maxNbTactics == -1 ? Result<>() : at_least(maxNbTactics, 1, "tactics"));
}

bool BuilderConfig::setMaxAuxStreams(int32_t nbStreams) noexcept {
  return put(SettingId::IBuilderConfig_setMaxAuxStreams, &Values::aux_streams, nbStreams,
             at_least(nbStreams, 0, "streams"));
}

bool BuilderConfig::setL2LimitForTiling(int64_t size) noexcept {
  return put(SettingId::IBuilderConfig_setL2LimitForTiling, &Values::l2_limit, size, at_least(size, 0, "bytes"));
}

void BuilderConfig::setBuilderOptimizationLevel(int32_t level) noexcept {
  Result<> check;
  if (level < 0 || level > 5) check = fail(ErrorCode::config_invalid, "level {} is outside [0, 5]", level);
  put(SettingId::IBuilderConfig_setBuilderOptimizationLevel, &Values::level, level, check);
}

int32_t BuilderConfig::addOptimizationProfile(const nv::IOptimizationProfile* profile) noexcept {
  return guarded(entry(), "IBuilderConfig::addOptimizationProfile", -1, [&]() -> Result<int32_t> {
    if (!profile) return fail(ErrorCode::invalid_argument, "profile is null");
    LATHE_ASSIGN(const Exclusive::Turn turn, static_cast<const OptimizationProfile*>(profile)->use().take());
    if (!profile->isValid())
      return fail(ErrorCode::profile_invalid, "profile is incomplete: an input lacks one of min, opt and max");
    profiles_.push_back(static_cast<const OptimizationProfile*>(profile));
    return static_cast<int32_t>(profiles_.size()) - 1;
  });
}

bool BuilderConfig::setTacticSources(nv::TacticSources tacticSources) noexcept {
  return guarded(entry(), "IBuilderConfig::setTacticSources", [&]() -> Result<> {
    nv::TacticSources own_sources = 0;
    for (const LibrarySource& library : kLibrarySources) own_sources |= bit_of(library.source);
    const nv::TacticSources known = ((nv::TacticSources{1} << nv::EnumMax<nv::TacticSource>()) - 1) | own_sources;
    if ((tacticSources & ~known) != 0)
      return fail(ErrorCode::config_invalid, "tactic sources {:#x} include unknown ones; {:#x} are known",
                  tacticSources, known);
    LATHE_TRY(notices_.consult_flags<nv::TacticSource>(tacticSources & ~own_sources, Values().tactic_sources, log()));
    values_.tactic_sources = tacticSources;
    return {};
  });
}

nv::ITimingCache* BuilderConfig::createTimingCache(const void* blob, std::size_t size) const noexcept {
  return guarded(entry(), "IBuilderConfig::createTimingCache", static_cast<nv::ITimingCache*>(nullptr),
                 [&]() -> Result<nv::ITimingCache*> {
                   if (size > 0 && !blob) return fail(ErrorCode::invalid_argument, "cache data is null");
                   auto cache = std::make_unique<TimingCache>(core_->reporter);
                   LATHE_TRY(cache->entries().deserialize({static_cast<const std::byte*>(blob), size}));
                   return cache.release();
                 });
}

bool BuilderConfig::setTimingCache(const nv::ITimingCache& cache, bool) noexcept {
  values_.timing_cache = &cache;
  return true;
}

void BuilderConfig::setMemoryPoolLimit(nv::MemoryPoolType pool, std::size_t poolSize) noexcept {
  guarded(entry(), "IBuilderConfig::setMemoryPoolLimit", [&]() -> Result<> {
    const auto index = static_cast<size_t>(pool);
    if (index >= kPools) return fail(ErrorCode::invalid_argument, "memory pool {} does not exist", index);
    if (pool == nv::MemoryPoolType::kTACTIC_SHARED_MEMORY && poolSize < kLeastShared)
      return fail(ErrorCode::config_invalid, "{} bytes of shared memory; at least {} are needed", poolSize,
                  kLeastShared);
    if (poolSize != SIZE_MAX) LATHE_TRY(notices_.consult(pool, log()));
    values_.pools[index] = poolSize;
    return {};
  });
}

std::size_t BuilderConfig::getMemoryPoolLimit(nv::MemoryPoolType pool) const noexcept {
  return guarded(entry(), "IBuilderConfig::getMemoryPoolLimit", std::size_t{0}, [&]() -> Result<std::size_t> {
    const auto index = static_cast<size_t>(pool);
    if (index >= kPools) return fail(ErrorCode::invalid_argument, "memory pool {} does not exist", index);
    return values_.pools[index] ? *values_.pools[index] : default_limit(pool);
  });
}

// What the device that is built for has, where that is in the machine; SIZE_MAX where nothing limits.
Result<std::size_t> BuilderConfig::default_limit(nv::MemoryPoolType pool) const {
  switch (pool) {
    case nv::MemoryPoolType::kDLA_MANAGED_SRAM:
      return std::size_t{1} << 20;
    case nv::MemoryPoolType::kDLA_LOCAL_DRAM:
      return std::size_t{1} << 30;
    case nv::MemoryPoolType::kDLA_GLOBAL_DRAM:
      return std::size_t{1} << 29;
    default:
      break;
  }
  const DeviceFamily* family = find_family(target.name);
  const bool is_dram = pool != nv::MemoryPoolType::kTACTIC_SHARED_MEMORY;
  if (!family) return SIZE_MAX;
  if (family->is_host())
    return is_dram ? static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE))
                   : SIZE_MAX;
  const Result<std::shared_ptr<Device>> device = family->open(cpu_threads);
  if (!device) return SIZE_MAX;
  if (!is_dram) return static_cast<std::size_t>((*device)->describe().limits.shared_bytes);
  const std::optional<MemoryUse> memory = (*device)->memory_use();
  return memory ? memory->total : SIZE_MAX;
}

void BuilderConfig::setPreviewFeature(nv::PreviewFeature feature, bool enable) noexcept {
  guarded(entry(), "IBuilderConfig::setPreviewFeature", [&]() -> Result<> {
    const uint32_t bit = bit_of(feature);
    const uint32_t features = enable ? values_.preview | bit : values_.preview & ~bit;
    LATHE_TRY(notices_.consult_flags<nv::PreviewFeature>(features, 0, log()));
    values_.preview = features;
    return {};
  });
}

void BuilderConfig::setPluginsToSerialize(const char* const* paths, int32_t nbPaths) noexcept {
  guarded(entry(), "IBuilderConfig::setPluginsToSerialize", [&]() -> Result<> {
    if (nbPaths < 0 || (nbPaths > 0 && !paths)) return fail(ErrorCode::invalid_argument, "paths are null");
    std::vector<std::string> plugins;
    for (int32_t i = 0; i < nbPaths; ++i) {
      LATHE_ASSIGN(std::string path, to_string(paths[i], "plugin path"));
      if (std::find(plugins.begin(), plugins.end(), path) != plugins.end())
        return fail(ErrorCode::config_invalid, "'{}' is given twice", path);
      plugins.push_back(std::move(path));
    }
    if (!plugins.empty()) LATHE_TRY(notices_.consult(SettingId::IBuilderConfig_setPluginsToSerialize, log()));
    plugins_ = std::move(plugins);
    return {};
  });
}

const char* BuilderConfig::getPluginToSerialize(int32_t index) const noexcept {
  return guarded(entry(), "IBuilderConfig::getPluginToSerialize", static_cast<const char*>(nullptr),
                 [&]() -> Result<const char*> {
                   if (index < 0 || static_cast<size_t>(index) >= plugins_.size())
                     return fail(ErrorCode::invalid_argument, "there is no plugin library {}: the configuration has {}",
                                 index, plugins_.size());
                   return plugins_[static_cast<size_t>(index)].c_str();
                 });
}

// An empty text asks for nothing.
Result<> BuilderConfig::refuse(SettingId id, const char* text, const char* what) {
  LATHE_ASSIGN(const std::string given, to_string(text, what, SIZE_MAX));
  return given.empty() || given == "[]" ? Result<>() : notices_.consult(id, log());
}

bool BuilderConfig::setRemoteAutoTuningConfig(const char* config) noexcept {
  constexpr auto kId = SettingId::IBuilderConfig_setRemoteAutoTuningConfig;
  return guarded(entry(), setting_of(kId).name, [&] { return refuse(kId, config, "configuration"); });
}

bool BuilderConfig::setBuildRoute(const char* buildRoute) noexcept {
  constexpr auto kId = SettingId::IBuilderConfig_setBuildRoute;
  return guarded(entry(), setting_of(kId).name, [&] { return refuse(kId, buildRoute, "build route"); });
}

}  // namespace lathe::api
