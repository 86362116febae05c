// SPDX-License-Identifier: Apache-2.0
#include "api/builder/measured_device.h"

#include "api/builder/timing_cache.h"

namespace lathe::api {

lathe::TimingCache* timing_cache_of(const BuilderConfig& settings) {
  const nv::ITimingCache* const cache = settings.getTimingCache();
  if (!cache || settings.has(nv::BuilderFlag::kDISABLE_TIMING_CACHE)) return nullptr;
  return &const_cast<TimingCache&>(static_cast<const TimingCache&>(*cache)).entries();
}

void use_measured_device(const BuilderConfig& settings, BackendBuild& backend, Log& log) {
  const lathe::TimingCache* const cache = timing_cache_of(settings);
  if (backend.device || !cache) return;
  std::vector<lathe::TimingCache::Device> devices = cache->devices_of(backend.target.name);
  if (devices.empty()) return;
  if (devices.size() > 1) {
    std::string names;
    for (const lathe::TimingCache::Device& device : devices) names += "\n  " + device.timing_key;
    log.print(Severity::warning,
              "the timing cache has no effect: it was measured on several devices of '{}', none of which is here. Give "
              "the build the cache of the one that the plan is for:{}",
              backend.target.name, names);
    return;
  }
  log.print(Severity::info, "the build goes by the timing cache's measurements on {}", devices[0].timing_key);
  backend.target = std::move(devices[0].target);
  backend.timing_key = std::move(devices[0].timing_key);
}

void note_measured_device(const BuilderConfig& settings, const BackendBuild& backend) {
  lathe::TimingCache* const cache = timing_cache_of(settings);
  if (cache && backend.device) cache->note_device({backend.timing_key, backend.target});
}

}  // namespace lathe::api
