// SPDX-License-Identifier: Apache-2.0
// The standard plugin library.
#ifndef NV_INFER_PLUGIN_H
#define NV_INFER_PLUGIN_H

#include "NvInfer.h"
#include "NvInferPluginUtils.h"

// Registers the standard plugins with the global registry under `libNamespace`. `logger` is an nvinfer1::ILogger* or
// nullptr. Calling it again is harmless.
extern "C" TENSORRTAPI bool initLibNvInferPlugins(void* logger, const char* libNamespace);

#endif  // NV_INFER_PLUGIN_H
