// SPDX-License-Identifier: Apache-2.0
// libnvinfer_vc_plugin: the plugins that TensorRT offers to engines of other versions, for programs that load this
// library by IPluginRegistry::loadLibrary(). It has no creators: models that use these plugins are imported as ops, so
// no engine asks for one.
#include "NvInferRuntime.h"

extern "C" TENSORRTAPI void setLoggerFinder(nvinfer1::ILoggerFinder*) noexcept {}

extern "C" TENSORRTAPI nvinfer1::IPluginCreatorInterface* const* getCreators(int32_t& nbCreators) noexcept {
  static nvinfer1::IPluginCreatorInterface* const kNone[] = {nullptr};
  nbCreators = 0;
  return kNone;
}
