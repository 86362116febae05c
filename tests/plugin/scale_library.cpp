// SPDX-License-Identifier: Apache-2.0
// A plugin library with the creator of ScalePlugin.
#include "test_plugins.h"

extern "C" __attribute__((visibility("default"))) nvinfer1::IPluginCreatorInterface* const* getCreators(
    int32_t& count) {
  static nvinfer1::TestCreator<nvinfer1::ScalePlugin> creator("Scale");
  static nvinfer1::IPluginCreatorInterface* const creators[] = {&creator};
  count = 1;
  return creators;
}
