// SPDX-License-Identifier: Apache-2.0
// Describing networks and building plans.
#ifndef NV_INFER_H
#define NV_INFER_H

#include "NvInferLegacyDims.h"
#include "NvInferRuntime.h"
#include "nvinfer/builder.h"
#include "nvinfer/builder_config.h"
#include "nvinfer/layers_attention.h"
#include "nvinfer/layers_basic.h"
#include "nvinfer/layers_control.h"
#include "nvinfer/layers_quantize.h"
#include "nvinfer/layers_select.h"
#include "nvinfer/layers_shape.h"
#include "nvinfer/network.h"
#include "nvinfer/network_enums.h"
#include "nvinfer/tensor.h"

// `logger` is an nvinfer1::ILogger*, `version` NV_TENSORRT_VERSION. nullptr on failure.
extern "C" TENSORRTAPI void* createInferBuilder_INTERNAL(void* logger, int32_t version) noexcept;

namespace nvinfer1 {

namespace safe {
class IPluginRegistry;
}  // namespace safe

namespace {

// nullptr on failure. The logger must outlive the builder and all it makes; the caller deletes the builder.
inline IBuilder* createInferBuilder(ILogger& logger) noexcept {
  return static_cast<IBuilder*>(createInferBuilder_INTERNAL(&logger, NV_TENSORRT_VERSION));
}

}  // namespace

// The registry of plugins for builds of this capability; nullptr when there is none.
extern "C" TENSORRTAPI IPluginRegistry* getBuilderPluginRegistry(EngineCapability capability) noexcept;
extern "C" TRT_DEPRECATED_API safe::IPluginRegistry* getBuilderSafePluginRegistry(EngineCapability capability) noexcept;

// Accepted for compatibility: Lathe has no internal libraries to load.
extern "C" TENSORRTAPI bool setInternalLibraryPath(const AsciiChar* path) noexcept;

}  // namespace nvinfer1

#endif  // NV_INFER_H
