// SPDX-License-Identifier: Apache-2.0
// A plugin library with two creators of ScalePlugin: one of plans' plugins, and one of models'.
#include "test_plugins.h"

namespace nvinfer1 {
namespace {

class ModelsCreator final : public IPluginCreatorV3One {
 public:
  IPluginV3* createPlugin(const char*, const PluginFieldCollection*, TensorRTPhase) noexcept override {
    return new ScalePlugin(getPluginName(), 2, Lie::none);
  }
  const PluginFieldCollection* getFieldNames() noexcept override { return nullptr; }
  const char* getPluginName() const noexcept override { return "ScaleOfModels"; }
  const char* getPluginVersion() const noexcept override { return "1"; }
  const char* getPluginNamespace() const noexcept override { return "test"; }
};

}  // namespace
}  // namespace nvinfer1

extern "C" __attribute__((visibility("default"))) nvinfer1::IPluginCreatorInterface* const* getCreators(
    int32_t& count) {
  static nvinfer1::TestCreator<nvinfer1::ScalePlugin> creator("Scale");
  static nvinfer1::ModelsCreator of_models;
  static nvinfer1::IPluginCreatorInterface* const creators[] = {&creator, &of_models};
  count = 2;
  return creators;
}
