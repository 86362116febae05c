// SPDX-License-Identifier: Apache-2.0
// The runtime's functions that programs find by name.
#include "NvInferPlugin.h"
#include "api/entry_point.h"
#include "api/guest/objects.h"
#include "api/registry_report.h"
#include "api/runtime/runtime.h"

namespace {

namespace nv = nvinfer1;
using lathe::Error;
using lathe::ErrorCode;
using lathe::Result;
using lathe::api::create;
using lathe::api::Reporter;
using lathe::api::SettingId;

lathe::api::SettingNotices g_notices;  // of the process

}  // namespace

extern "C" {

TENSORRTAPI void* createInferRuntime_INTERNAL(void* logger, int32_t version) noexcept {
  return create("createInferRuntime", logger, version, [](nv::ILogger* typed) -> Result<void*> {
    nv::IRuntime* runtime = new lathe::api::Runtime(typed);
    return runtime;
  });
}

TENSORRTAPI void* createInferRefitter_INTERNAL(void* engine, void* logger, int32_t version) noexcept {
  return create("createInferRefitter", logger, version, [&](nv::ILogger* typed) -> Result<void*> {
    if (!engine) return lathe::fail(ErrorCode::invalid_argument, "the engine is null");
    // Which may be of another version.
    return lathe::api::guest::table_part(*static_cast<nv::ICudaEngine*>(engine))->createRefitter(*typed);
  });
}

// It belongs to no logger that is sure to live: it reports to its own recorder, or to lastError() alone.
TENSORRTAPI nv::IPluginRegistry* getPluginRegistry() noexcept {
  static lathe::plugin::Registry* const registry = [] {
    lathe::plugin::Registry& global = lathe::plugin::global_registry();
    global.set_report(
        [](nv::IErrorRecorder* recorder, const char* where, const Error& error) {
          Reporter reporter(static_cast<nv::ILogger*>(nullptr));
          reporter.set_recorder(recorder);
          reporter.report(where, error);
        },
        lathe::api::logger_finder());
    return &global;
  }();
  return registry;
}

TENSORRTAPI nv::ILogger* getLogger() noexcept { return lathe::api::first_logger(); }

TENSORRTAPI int32_t getInferLibVersion() noexcept { return NV_TENSORRT_VERSION; }
TENSORRTAPI int32_t getInferLibMajorVersion() noexcept { return NV_TENSORRT_MAJOR; }
TENSORRTAPI int32_t getInferLibMinorVersion() noexcept { return NV_TENSORRT_MINOR; }
TENSORRTAPI int32_t getInferLibPatchVersion() noexcept { return NV_TENSORRT_PATCH; }
TENSORRTAPI int32_t getInferLibBuildVersion() noexcept { return NV_TENSORRT_BUILD; }

TENSORRTAPI bool initLibNvInferPlugins(void* logger, const char*) {
  const Reporter reporter(static_cast<nv::ILogger*>(logger));
  return lathe::api::guarded(reporter, "initLibNvInferPlugins", [&] {
    return g_notices.consult(SettingId::process_initLibNvInferPlugins, reporter.log());
  });
}

}  // extern "C"

namespace nvinfer1 {

extern "C" bool setInternalLibraryPath(const AsciiChar*) noexcept {
  const Reporter reporter(static_cast<nv::ILogger*>(nullptr));  // there is no object yet; lastError() tells
  return lathe::api::guarded(reporter, "setInternalLibraryPath", [&] {
    return g_notices.consult(SettingId::process_setInternalLibraryPath, reporter.log());
  });
}

}  // namespace nvinfer1
