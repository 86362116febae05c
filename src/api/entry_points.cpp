// SPDX-License-Identifier: Apache-2.0
// The functions that programs find by name.
#include <atomic>

#include "NvInferPlugin.h"
#include "NvOnnxParser.h"
#include "api/builder.h"
#include "api/parser.h"
#include "api/registry_report.h"
#include "api/runtime.h"
#include "plugin/registry.h"

namespace {

namespace nv = nvinfer1;
using lathe::Error;
using lathe::ErrorCode;
using lathe::Result;
using lathe::api::refusal_of;
using lathe::api::Reporter;
using lathe::api::SettingId;

std::atomic<nv::ILogger*> g_first_logger{nullptr};
lathe::api::SettingNotices g_notices;  // of the process

// Programs compiled for another generation lay their classes out differently.
Result<nv::ILogger*> check_caller(void* logger, int32_t version) {
  auto* typed = static_cast<nv::ILogger*>(logger);
  if (!typed) return lathe::fail(ErrorCode::invalid_argument, "the logger is null");
  if (version / 10000 != NV_TENSORRT_MAJOR)
    return lathe::fail(ErrorCode::invalid_argument,
                       "the program was compiled for interface version {}, this library has {}; compile it anew",
                       version, NV_TENSORRT_VERSION);
  nv::ILogger* none = nullptr;
  g_first_logger.compare_exchange_strong(none, typed);
  return typed;
}

// Runs `make` with the checked logger; on failure one report to that logger.
template <class Make>
void* create(const char* where, void* logger, int32_t version, Make&& make) noexcept {
  const Reporter reporter(static_cast<nv::ILogger*>(logger));
  return lathe::api::guarded(reporter, where, static_cast<void*>(nullptr), [&]() -> Result<void*> {
    LATHE_ASSIGN(nv::ILogger * typed, check_caller(logger, version));
    return make(typed);
  });
}

}  // namespace

extern "C" {

TENSORRTAPI void* createInferBuilder_INTERNAL(void* logger, int32_t version) noexcept {
  return create("createInferBuilder", logger, version, [](nv::ILogger* typed) -> Result<void*> {
    auto core = std::make_shared<lathe::api::BuilderCore>(typed);
    nv::IBuilder* builder = new lathe::api::Builder(core);
    core->builder = builder;
    return builder;
  });
}

TENSORRTAPI void* createInferRuntime_INTERNAL(void* logger, int32_t version) noexcept {
  return create("createInferRuntime", logger, version, [](nv::ILogger* typed) -> Result<void*> {
    nv::IRuntime* runtime = new lathe::api::Runtime(typed);
    return runtime;
  });
}

TENSORRTAPI void* createInferRefitter_INTERNAL(void* engine, void* logger, int32_t version) noexcept {
  return create("createInferRefitter", logger, version, [&](nv::ILogger*) -> Result<void*> {
    if (!engine) return lathe::fail(ErrorCode::invalid_argument, "the engine is null");
    return lathe::fail(refusal_of(SettingId::process_createInferRefitter));
  });
}

TENSORRTAPI void* createNvOnnxParserRefitter_INTERNAL(void* refitter, void* logger, int32_t) noexcept {
  return create("createParserRefitter", logger, NV_TENSORRT_VERSION, [&](nv::ILogger*) -> Result<void*> {
    return lathe::fail(refusal_of(SettingId::process_createParserRefitter));
  });
}

TENSORRTAPI void* createNvOnnxParser_INTERNAL(void* network, void* logger, int version) noexcept {
  return create("createParser", logger, NV_TENSORRT_VERSION, [&](nv::ILogger* typed) -> Result<void*> {
    if (!network) return lathe::fail(ErrorCode::invalid_argument, "the network is null");
    if (version != NV_ONNX_PARSER_VERSION)
      return lathe::fail(ErrorCode::invalid_argument,
                         "the program was compiled for parser version {}, this library has {}", version,
                         NV_ONNX_PARSER_VERSION);
    auto* definition = static_cast<lathe::api::NetworkDefinition*>(static_cast<nv::INetworkDefinition*>(network));
    nvonnxparser::IParser* parser = new lathe::api::Parser(*definition, typed);
    return parser;
  });
}

TENSORRTAPI int getNvOnnxParserVersion() noexcept { return NV_ONNX_PARSER_VERSION; }

// It belongs to no logger that is sure to live: it reports to its own recorder, or to lastError() alone.
TENSORRTAPI nv::IPluginRegistry* getPluginRegistry() noexcept {
  static lathe::plugin::Registry* const registry = [] {
    lathe::plugin::Registry& global = lathe::plugin::global_registry();
    global.set_report([](nv::IErrorRecorder* recorder, const char* where, const Error& error) {
      Reporter reporter(static_cast<nv::ILogger*>(nullptr));
      reporter.set_recorder(recorder);
      reporter.report(where, error);
    });
    return &global;
  }();
  return registry;
}

TENSORRTAPI nv::ILogger* getLogger() noexcept { return g_first_logger.load(); }

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

extern "C" IPluginRegistry* getBuilderPluginRegistry(EngineCapability capability) noexcept {
  return capability == EngineCapability::kSTANDARD ? ::getPluginRegistry() : nullptr;
}

extern "C" safe::IPluginRegistry* getBuilderSafePluginRegistry(EngineCapability) noexcept { return nullptr; }

extern "C" bool setInternalLibraryPath(const AsciiChar*) noexcept {
  const Reporter reporter(static_cast<nv::ILogger*>(nullptr));  // there is no object yet; lastError() tells
  return lathe::api::guarded(reporter, "setInternalLibraryPath", [&] {
    return g_notices.consult(SettingId::process_setInternalLibraryPath, reporter.log());
  });
}

}  // namespace nvinfer1
