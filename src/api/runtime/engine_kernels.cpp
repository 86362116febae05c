// SPDX-License-Identifier: Apache-2.0
// Kernels that an engine has compiled for its device, and where they are kept.
#include <sys/utsname.h>

#include "api/runtime/cuda_engine.h"
#include "base/version.h"

namespace lathe::api {

Result<std::string> EngineCore::cache_environment() const {
  if (!engine->has_device())
    return fail(ErrorCode::invalid_state,
                "the engine was loaded for inspection only: load it without setInspectionOnly()");
  utsname host{};
  ::uname(&host);
  return fmt::format("library={}\nsystem={} {}\ndevice={}\n", library_version().to_string(), host.sysname, host.machine,
                     engine->device().timing_key());
}

Result<> EngineCore::check_cache(const KernelCache& cache) const {
  LATHE_ASSIGN(const std::string environment, cache_environment());
  if (cache.environment() == environment) return {};
  return fail(ErrorCode::invalid_argument,
              "the runtime cache is for another device than the engine's: create it by this engine's configuration");
}

Result<> EngineCore::open_cache_file(RuntimeCore& runtime) {
  RuntimeCore::CachePlace place;
  {
    const std::lock_guard lock(runtime.cache_mutex);
    place = runtime.cache_place;
  }
  Log& log = reporter->log();
  if (place.path.empty()) return {};
  if (engine->device().is_host()) {
    log.print(Severity::info, "runtime cache '{}' is not used: nothing is compiled for a CPU when engines are loaded",
              place.path);
    return {};
  }
  LATHE_ASSIGN(std::string environment, cache_environment());
  cache_file = std::make_shared<CacheFile>(std::move(place.path), std::move(environment), place.most_bytes);
  cache_file->load(log);
  return make_kernels();
}

Result<> EngineCore::make_kernels(KernelCache* cache) const {
  if (!cache && cache_file) cache = &cache_file->kernels();
  return engine->has_device() ? engine->make_kernels(cache) : Result<>();
}

void EngineCore::save_kernels() noexcept {
  if (cache_file) cache_file->save(reporter->log());
}

}  // namespace lathe::api
