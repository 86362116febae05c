// SPDX-License-Identifier: Apache-2.0
// Settings of the runtime: names, when they are refused, what follows from them.
#include "wrapper/wrapper_world.h"

namespace lathe {
namespace {

class SettingsTest : public WrapperTest {
 protected:
  // Refused before anything is built or loaded: the plan is none, and the runtime says nothing.
  void expect_refused_settings(const RuntimeSettings& settings, std::initializer_list<std::string_view> words) {
    expect_refused(checkRuntimeSettings(settings), "LATHE-9001", words);
    listen(nv::ILogger::Severity::kERROR);
    expect_refused(EngineWrapper::create(shared_, "no plan", fields_of(), settings) != nullptr, "LATHE-9001", words);
    EXPECT_EQ(logger.text.size(), 1u);
  }
};

// S195, S196.
TEST_F(SettingsTest, InvalidCudaGraphStrategy) {
  for (const char* name : {"disable", "", "Disabled", "whole_graph"})
    expect_refused_settings({"", "lazy", name}, {"'disabled', 'whole_graph_capture'", name});
}

// S195, S196.
TEST_F(SettingsTest, InvalidDynamicShapesStrategy) {
  for (const char* name : {"lasy", "", "EAGER"})
    expect_refused_settings({"", name, "disabled"}, {"'lazy', 'eager', 'none'", name});
}

// S194, S190: each valid pair of names, of an engine that is then right: of a real model in wrapped_model_test.
TEST_F(SettingsTest, ValidNames) {
  const std::string bytes = plan();
  for (const char* specialization : {"lazy", "eager", "none"})
    for (const char* graphs : {"disabled", "whole_graph_capture"}) {
      const RuntimeSettings settings{"", specialization, graphs};
      EXPECT_TRUE(checkRuntimeSettings(settings));
      const std::unique_ptr<EngineWrapper> wrapper = wrap(bytes, fields_of(), settings);
      ASSERT_NE(wrapper, nullptr);
      EXPECT_EQ(wrapper->settings().specialization, specialization);
      EXPECT_EQ(wrapper->settings().cudaGraphs, graphs);
      EXPECT_EQ(wrapper->isCapturedByRuntime(), settings.cudaGraphs != "disabled");
      for (int64_t rows = 1; rows < 4; ++rows) expect_right(*wrapper, Batch(rows));
    }
}

// S212, S215: only kernels that change in the background cannot be captured; and what is not known yet counts as open.
TEST_F(SettingsTest, CapturableByTable) {
  for (const bool dynamic : {false, true})
    for (const char* name : {"lazy", "eager", "none"})
      EXPECT_EQ(capturable(name, dynamic), !(dynamic && std::string_view(name) == "lazy")) << name << dynamic;
  EXPECT_FALSE(capturable("lasy", false));
  EXPECT_NE(std::string(wrapperError()).find("'lazy', 'eager', 'none'"), std::string::npos);
}

// S230: the wrapper records no graphs while the runtime captures them itself.
TEST_F(SettingsTest, WhoRecordsGraphs) {
  const std::string bytes = plan();
  for (const bool asked : {false, true})
    for (const char* strategy : {"disabled", "whole_graph_capture"}) {
      const std::unique_ptr<EngineWrapper> wrapper = wrap(bytes, fields_of(), {"", "none", strategy});
      ASSERT_TRUE(wrapper->setCudaGraphs(asked));
      EXPECT_EQ(wrapper->cudaGraphs(), asked);
      const bool is_internal = std::string_view(strategy) != "disabled";
      EXPECT_EQ(wrapper->recordsGraphs(), asked && !is_internal && nv::on_gpu());
      for (int run = 0; run < 3; ++run) expect_right(*wrapper, Batch(4, static_cast<float>(run)));
      EXPECT_EQ(wrapper->counts().graphsRecorded, wrapper->recordsGraphs() ? 1 : 0);
      EXPECT_EQ(wrapper->counts().graphReplays, wrapper->recordsGraphs() ? 3 : 0);
    }
}

// S199, S205, S241: what the interface has is found by asking for it, and can be asked for.
TEST_F(SettingsTest, Features) {
  const WrapperFeatures features = wrapperFeatures();
  EXPECT_EQ(features.interfaceMajor, NV_TENSORRT_MAJOR);
  EXPECT_TRUE(features.runtimeConfig);
  EXPECT_TRUE(features.runtimeCache);
  EXPECT_TRUE(features.specialization);
  EXPECT_TRUE(features.cudaGraphStrategy);
  EXPECT_TRUE(features.captureQuery);
  EXPECT_TRUE(features.communicator);
}

}  // namespace
}  // namespace lathe
