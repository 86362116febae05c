// SPDX-License-Identifier: Apache-2.0
#include "api/builder_config.h"

#include <algorithm>

#include "lathe.h"

namespace lathe::api {

BuilderConfig::BuilderConfig(std::shared_ptr<BuilderCore> core) : core_(std::move(core)) {
  mImpl = this;
  std::fill(std::begin(pools_), std::end(pools_), SIZE_MAX);
}

void BuilderConfig::reset() noexcept {
  BuilderConfig fresh(core_);
  profiles_.clear();
  plugins_.clear();
  timing_cache_ = nullptr;
  monitor_ = nullptr;
  profile_stream_ = nullptr;
  flags_ = fresh.flags_;
  tactic_sources_ = fresh.tactic_sources_;
  preview_ = fresh.preview_;
  std::copy(std::begin(fresh.pools_), std::end(fresh.pools_), std::begin(pools_));
  capability_ = fresh.capability_;
  default_device_ = fresh.default_device_;
  verbosity_ = fresh.verbosity_;
  compatibility_ = fresh.compatibility_;
  platform_ = fresh.platform_;
  tiling_ = fresh.tiling_;
  avg_timing_ = fresh.avg_timing_;
  dla_core_ = fresh.dla_core_;
  level_ = fresh.level_;
  aux_streams_ = fresh.aux_streams_;
  max_tactics_ = fresh.max_tactics_;
  l2_limit_ = fresh.l2_limit_;
  budget_seconds = fresh.budget_seconds;
  target.swap(fresh.target);
  cpu_threads = fresh.cpu_threads;
  toolchain = fresh.toolchain;
  precision = fresh.precision;
  int8 = fresh.int8;
  constraints = fresh.constraints;
  layer_types.clear();
}

void BuilderConfig::setAvgTimingIterations(int32_t avgTiming) noexcept {
  guarded(entry(), "IBuilderConfig::setAvgTimingIterations", [&]() -> Result<> {
    if (avgTiming < 1) return fail(ErrorCode::config_invalid, "{} iterations; at least 1 is needed", avgTiming);
    avg_timing_ = avgTiming;
    return {};
  });
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
    const nv::TacticSources known =
        ((nv::TacticSources{1} << nv::EnumMax<nv::TacticSource>()) - 1) | bit_of(kCUBLAS_LT) | bit_of(kCUDNN);
    if ((tacticSources & ~known) != 0)
      return fail(ErrorCode::config_invalid, "tactic sources {:#x} include unknown ones; {:#x} are known",
                  tacticSources, known);
    tactic_sources_ = tacticSources;
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
  timing_cache_ = &cache;
  return true;
}

void BuilderConfig::setMemoryPoolLimit(nv::MemoryPoolType pool, std::size_t poolSize) noexcept {
  guarded(entry(), "IBuilderConfig::setMemoryPoolLimit", [&]() -> Result<> {
    const auto index = static_cast<size_t>(pool);
    if (index >= std::size(pools_)) return fail(ErrorCode::invalid_argument, "memory pool {} does not exist", index);
    pools_[index] = poolSize;
    return {};
  });
}

std::size_t BuilderConfig::getMemoryPoolLimit(nv::MemoryPoolType pool) const noexcept {
  const auto index = static_cast<size_t>(pool);
  return index < std::size(pools_) ? pools_[index] : 0;
}

void BuilderConfig::setPreviewFeature(nv::PreviewFeature feature, bool enable) noexcept {
  preview_ = enable ? preview_ | bit_of(feature) : preview_ & ~bit_of(feature);
}

void BuilderConfig::setBuilderOptimizationLevel(int32_t level) noexcept {
  guarded(entry(), "IBuilderConfig::setBuilderOptimizationLevel", [&]() -> Result<> {
    if (level < 0 || level > 5) return fail(ErrorCode::config_invalid, "level {} is outside [0, 5]", level);
    level_ = level;
    return {};
  });
}

void BuilderConfig::setPluginsToSerialize(const char* const* paths, int32_t nbPaths) noexcept {
  guarded(entry(), "IBuilderConfig::setPluginsToSerialize", [&]() -> Result<> {
    if (nbPaths < 0 || (nbPaths > 0 && !paths)) return fail(ErrorCode::invalid_argument, "paths are null");
    std::vector<std::string> plugins;
    for (int32_t i = 0; i < nbPaths; ++i) {
      LATHE_ASSIGN(std::string path, to_string(paths[i], "plugin path"));
      plugins.push_back(std::move(path));
    }
    plugins_ = std::move(plugins);
    return {};
  });
}

const char* BuilderConfig::getPluginToSerialize(int32_t index) const noexcept {
  const bool there = index >= 0 && static_cast<size_t>(index) < plugins_.size();
  return there ? plugins_[static_cast<size_t>(index)].c_str() : nullptr;
}

bool BuilderConfig::setMaxAuxStreams(int32_t nbStreams) noexcept {
  if (nbStreams < 0) return false;
  aux_streams_ = nbStreams;
  return true;
}

bool BuilderConfig::setL2LimitForTiling(int64_t size) noexcept {
  if (size < 0) return false;
  l2_limit_ = size;
  return true;
}

bool BuilderConfig::setRemoteAutoTuningConfig(const char*) noexcept {
  return guarded(entry(), "IBuilderConfig::setRemoteAutoTuningConfig",
                 [&]() -> Result<> { return fail(ErrorCode::config_invalid, "remote auto-tuning is not supported"); });
}

bool BuilderConfig::setBuildRoute(const char* buildRoute) noexcept {
  return guarded(entry(), "IBuilderConfig::setBuildRoute", [&]() -> Result<> {
    LATHE_ASSIGN(const std::string route, to_string(buildRoute, "build route", SIZE_MAX));
    if (route.empty() || route == "[]") return {};
    return fail(ErrorCode::config_invalid, "there are no build routes to choose from; see getAllBuildRoutes()");
  });
}

}  // namespace lathe::api
