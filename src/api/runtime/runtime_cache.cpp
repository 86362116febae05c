// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/runtime_cache.h"

#include "api/convert.h"
#include "api/host_memory.h"
#include "api/json.h"
#include "api/report_text.h"
#include "api/runtime/cache_file.h"
#include "api/runtime/runtime.h"
#include "base/own_object.h"
#include "lathe.h"

namespace lathe {
namespace api {

nv::IHostMemory* RuntimeCache::serialize() const noexcept {
  return guarded(*reporter_, "IRuntimeCache::serialize", static_cast<nv::IHostMemory*>(nullptr),
                 [&]() -> Result<nv::IHostMemory*> { return new HostMemory(kernels_->serialize()); });
}

bool RuntimeCache::deserialize(const void* blob, size_t size) noexcept {
  return guarded(*reporter_, "IRuntimeCache::deserialize", [&]() -> Result<> {
    if (!blob) return fail(ErrorCode::invalid_argument, "the bytes are null");
    return kernels_->merge({static_cast<const std::byte*>(blob), size});
  });
}

bool RuntimeCache::reset() noexcept {
  return guarded(*reporter_, "IRuntimeCache::reset", [&]() -> Result<> {
    kernels_->reset();
    return {};
  });
}

namespace {

// What goes wrong with a file is a warning in the log and the thread's last error, not a report.
template <class Body>
bool with_file(const char* where, const nv::IRuntimeCache& cache, const char* path, Body&& body) noexcept {
  return guarded(silent(), where, [&]() -> Result<> {
    LATHE_ASSIGN(RuntimeCache* const own, own_object<RuntimeCache>(const_cast<nv::IRuntimeCache&>(cache)));
    LATHE_ASSIGN(const std::string file, to_string(path, "path"));
    Result<size_t> done = body(*own->kernels(), file);
    if (done) return {};
    own->reporter().log().print(Severity::warning, "{}: {}", where, done.error().to_string());
    return fail(std::move(done).error());
  });
}

}  // namespace
}  // namespace api

using namespace api;

bool loadRuntimeCache(nv::IRuntimeCache& cache, const char* path) noexcept {
  return with_file("lathe::loadRuntimeCache", cache, path, load_kernels);
}

bool saveRuntimeCache(const nv::IRuntimeCache& cache, const char* path) noexcept {
  return with_file("lathe::saveRuntimeCache", cache, path, save_kernels);
}

bool setRuntimeCacheLimit(nv::IRuntimeCache& cache, int64_t mostBytes) noexcept {
  return guarded(silent(), "lathe::setRuntimeCacheLimit", [&]() -> Result<> {
    LATHE_ASSIGN(RuntimeCache* const own, own_object<RuntimeCache>(cache));
    if (mostBytes < 0) return fail(ErrorCode::invalid_argument, "{} bytes are negative", mostBytes);
    own->kernels()->set_limit(static_cast<size_t>(mostBytes));
    return {};
  });
}

nv::IHostMemory* runtimeCacheJson(const nv::IRuntimeCache& cache) noexcept {
  return report_text("lathe::runtimeCacheJson", [&]() -> Result<std::string> {
    LATHE_ASSIGN(RuntimeCache* const own, own_object<RuntimeCache>(const_cast<nv::IRuntimeCache&>(cache)));
    const KernelCache::Counts counts = own->kernels()->counts();
    return json_object({{"environment", own->kernels()->environment()},
                        {"kernels", counts.kernels},
                        {"bytes", counts.bytes},
                        {"most_bytes", counts.limit},
                        {"hits", counts.hits},
                        {"compiled", counts.compiled},
                        {"evicted", counts.evicted}})
        .indented();
  });
}

bool setRuntimeCacheFile(nv::IRuntime& runtime, const char* path, int64_t mostBytes) noexcept {
  return guarded(silent(), "lathe::setRuntimeCacheFile", [&]() -> Result<> {
    LATHE_ASSIGN(Runtime* const own, own_object<Runtime>(runtime));
    if (mostBytes < 0) return fail(ErrorCode::invalid_argument, "{} bytes are negative", mostBytes);
    RuntimeCore::CachePlace place;
    if (path) {
      LATHE_ASSIGN(place.path, to_string(path, "path"));
    }
    place.most_bytes = mostBytes == 0 ? KernelCache::kDefaultLimit : static_cast<size_t>(mostBytes);
    const std::lock_guard lock(own->core().cache_mutex);
    own->core().cache_place = std::move(place);
    return {};
  });
}

}  // namespace lathe
