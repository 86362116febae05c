// SPDX-License-Identifier: Apache-2.0
// Loading and running plans.
#ifndef NV_INFER_RUNTIME_H
#define NV_INFER_RUNTIME_H

#include "NvInferImpl.h"
#include "NvInferLegacyDims.h"
#include "NvInferPluginBase.h"
#include "NvInferRuntimeCommon.h"
#include "nvinfer/engine.h"
#include "nvinfer/execution_context.h"
#include "nvinfer/plugin_v3.h"
#include "nvinfer/runtime_enums.h"
#include "nvinfer/runtime_interfaces.h"
#include "nvinfer/runtime_objects.h"

// `logger` is an nvinfer1::ILogger*, `engine` an nvinfer1::ICudaEngine*, `version` NV_TENSORRT_VERSION. nullptr on
// failure.
extern "C" TENSORRTAPI void* createInferRuntime_INTERNAL(void* logger, int32_t version) noexcept;
extern "C" TENSORRTAPI void* createInferRefitter_INTERNAL(void* engine, void* logger, int32_t version) noexcept;

// The global registry.
extern "C" TENSORRTAPI nvinfer1::IPluginRegistry* getPluginRegistry() noexcept;

// The logger that the first builder, runtime or refitter of the process was made with; nullptr before.
extern "C" TENSORRTAPI nvinfer1::ILogger* getLogger() noexcept;

// Parts of the version of the library that is loaded.
extern "C" TENSORRTAPI int32_t getInferLibMajorVersion() noexcept;
extern "C" TENSORRTAPI int32_t getInferLibMinorVersion() noexcept;
extern "C" TENSORRTAPI int32_t getInferLibPatchVersion() noexcept;
extern "C" TENSORRTAPI int32_t getInferLibBuildVersion() noexcept;

namespace nvinfer1 {

// In an unnamed namespace, so that each caller passes the version it was compiled for.
namespace {

inline IRuntime* createInferRuntime(ILogger& logger) noexcept {
  return static_cast<IRuntime*>(createInferRuntime_INTERNAL(&logger, NV_TENSORRT_VERSION));
}

inline IRefitter* createInferRefitter(ICudaEngine& engine, ILogger& logger) noexcept {
  return static_cast<IRefitter*>(createInferRefitter_INTERNAL(&engine, &logger, NV_TENSORRT_VERSION));
}

}  // namespace

// Registers creator T with the global registry when constructed.
template <typename T>
class PluginRegistrar {
 public:
  PluginRegistrar() { getPluginRegistry()->registerCreator(instance, ""); }

 private:
  T instance{};
};

}  // namespace nvinfer1

#define REGISTER_TENSORRT_PLUGIN(name) \
  static nvinfer1::PluginRegistrar<name> pluginRegistrar##name {}

#endif  // NV_INFER_RUNTIME_H
