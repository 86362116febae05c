// SPDX-License-Identifier: Apache-2.0
// A plugin library that does not do what it should: LATHE_LIE is the number of the lie.
#include <stdexcept>

#include "NvInferRuntime.h"

namespace {

class Nameless : public nvinfer1::IPluginCreatorV3One {
 public:
  nvinfer1::IPluginV3* createPlugin(const nvinfer1::AsciiChar*, const nvinfer1::PluginFieldCollection*,
                                    nvinfer1::TensorRTPhase) noexcept override {
    return nullptr;
  }
  const nvinfer1::PluginFieldCollection* getFieldNames() noexcept override { return nullptr; }
  const nvinfer1::AsciiChar* getPluginName() const noexcept override { return nullptr; }
  const nvinfer1::AsciiChar* getPluginVersion() const noexcept override { return "1"; }
  const nvinfer1::AsciiChar* getPluginNamespace() const noexcept override { return ""; }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) nvinfer1::IPluginCreatorInterface* const* getCreators(
    int32_t& count) {
  static Nameless nameless;
  static nvinfer1::IPluginCreatorInterface* const creators[] = {&nameless, nullptr};
  count = LATHE_LIE == 1 ? -1 : LATHE_LIE == 3 ? 2 : 1;
  if (LATHE_LIE == 2) return nullptr;
  if (LATHE_LIE == 4) throw std::runtime_error("a mistake of the plugin's");
  if (LATHE_LIE == 5) throw 5;
  return creators;  // 6: as it should be, but for the creator's name
}
