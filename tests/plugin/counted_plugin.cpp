// SPDX-License-Identifier: Apache-2.0
// A plugin library with one creator.
#include "NvInferRuntime.h"

namespace {

class Creator : public nvinfer1::IPluginCreatorV3One {
 public:
  nvinfer1::IPluginV3* createPlugin(const nvinfer1::AsciiChar*, const nvinfer1::PluginFieldCollection*,
                                    nvinfer1::TensorRTPhase) noexcept override {
    return nullptr;
  }
  const nvinfer1::PluginFieldCollection* getFieldNames() noexcept override { return nullptr; }
  const nvinfer1::AsciiChar* getPluginName() const noexcept override { return "Counted"; }
  const nvinfer1::AsciiChar* getPluginVersion() const noexcept override { return "1"; }
  const nvinfer1::AsciiChar* getPluginNamespace() const noexcept override { return ""; }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) void setLoggerFinder(nvinfer1::ILoggerFinder* finder) {
  if (nvinfer1::ILogger* logger = finder->findLogger())
    logger->log(nvinfer1::ILogger::Severity::kINFO, "the library has found a logger");
}

extern "C" __attribute__((visibility("default"))) nvinfer1::IPluginCreatorInterface* const* getCreators(
    int32_t& count) {
  static Creator creator;
  static nvinfer1::IPluginCreatorInterface* const creators[] = {&creator};
  count = 1;
  return creators;
}
