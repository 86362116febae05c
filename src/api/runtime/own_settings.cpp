// SPDX-License-Identifier: Apache-2.0
// Lathe's own settings of the process and of runtimes; see lathe.h.
#include "api/own_settings.h"

#include "api/runtime/devices.h"
#include "api/runtime/runtime.h"
#include "api/runtime/runtime_config.h"
#include "base/atomic_file.h"
#include "base/own_object.h"
#include "lathe.h"
#include "ops/random_seed.h"
#include "plugin/running_plugin.h"

namespace lathe {

namespace nv = nvinfer1;
using api::check_threads;

namespace {

// One report, to lastError(), where the object is not this library's.
template <class T, class I>
Result<T*> own_of(const char* where, I& object) noexcept {
  Result<T*> own = own_object<T>(object);
  if (!own) api::silent().report(where, own.error());
  return own;
}

}  // namespace

void releaseIdleDevices() noexcept { api::release_devices(); }

void setRandomSeed(uint64_t seed, bool seeded) noexcept {
  set_random_seed(seeded ? std::optional(seed) : std::nullopt);
}

nv::ICudaEngine* loadEngineFile(nv::IRuntime& runtime, const char* path) noexcept {
  const Result<api::Runtime*> own = own_of<api::Runtime>("lathe::loadEngineFile", runtime);
  return own ? (*own)->load_file(path) : nullptr;
}

bool saveFile(const void* data, std::size_t size, const char* path) noexcept {
  return api::guarded(api::silent(), "lathe::saveFile", [&]() -> Result<> {
    if (!path || !*path) return fail(ErrorCode::invalid_argument, "the path is {}", path ? "empty" : "null");
    if (!data && size > 0) return fail(ErrorCode::invalid_argument, "{} bytes at null for '{}'", size, path);
    return write_file_atomically(path, {static_cast<const std::byte*>(data), size});
  });
}

bool runsOnHost(const nv::IPluginResourceContext& context) noexcept {
  const auto* own = dynamic_cast<const plugin::ResourceContext*>(&context);
  return own && own->is_host();
}

void setInspectionOnly(nv::IRuntime& runtime, bool only) noexcept {
  if (const Result<api::Runtime*> own = own_of<api::Runtime>("lathe::setInspectionOnly", runtime))
    (*own)->core().inspection_only = only;
}

bool setCpuThreads(nv::IRuntime& runtime, int32_t threads) noexcept {
  const Result<api::Runtime*> own = own_of<api::Runtime>("lathe::setCpuThreads", runtime);
  if (!own || !check_threads(threads)) return false;
  (*own)->core().cpu_threads = threads;
  return true;
}

bool setCpuThreads(nv::IRuntimeConfig& config, int32_t threads) noexcept {
  const Result<api::RuntimeConfig*> own = own_of<api::RuntimeConfig>("lathe::setCpuThreads", config);
  if (!own || !check_threads(threads)) return false;
  (*own)->settings.cpu_threads = threads;
  return true;
}

}  // namespace lathe
