// SPDX-License-Identifier: Apache-2.0
// A real model with each of the wrapper's features, compared with its plain
// evaluation.
#include <cmath>

#include "NvOnnxParser.h"
#include "wrapper/wrapper_world.h"

namespace lathe {
namespace {

constexpr const char* kModel = LATHE_SOURCE_DIR "/examples/digits/digits.onnx";
constexpr int64_t kMostImages = 4;

class WrappedModelTest : public WrapperTest {
 protected:
  void SetUp() override {
    WrapperTest::SetUp();
    if (IsSkipped()) return;
    memory_ = shared_memory(kMostImages * 64 * sizeof(float));
    network.reset(builder->createNetworkV2(0));
    config.reset(builder->createBuilderConfig());
    setBuildBudget(*config, 0);
    config->clearFlag(nv::BuilderFlag::kTF32);  // as the plain evaluation multiplies
    const std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
    ASSERT_TRUE(parser->parseFromFile(kModel, 0));
    nv::IOptimizationProfile* const profile = builder->createOptimizationProfile();
    for (const auto& [select, images] :
         {std::pair(nv::OptProfileSelector::kMIN, 1), std::pair(nv::OptProfileSelector::kOPT, 2),
          std::pair(nv::OptProfileSelector::kMAX, 4)})
      profile->setDimensions("image", select, nv::Dims4(images, 1, 8, 8));
    config->addOptimizationProfile(profile);
    bytes_ = plan();
    for (int64_t i = 0; i < kMostImages * 64; ++i) image()[i] = static_cast<float>((i * i * 7 + i / 64) % 17) / 16;
    const NamedTensor in{"image", nv::DataType::kFLOAT, nv::Dims4(kMostImages, 1, 8, 8), image()};
    const std::unique_ptr<ITensorList> out(evaluate(kModel, &in, 1));
    ASSERT_NE(out, nullptr) << lastError();
    const auto* const values = static_cast<const float*>(out->get(0)->data);
    wanted_.assign(values, values + kMostImages * 10);
  }
  float* image() const { return static_cast<float*>(memory_.get()); }

  std::unique_ptr<EngineWrapper> wrap_model(const RuntimeSettings& settings) {
    EngineFields fields = fields_of("digits");
    fields.inputs = {"image"};
    fields.outputs = {"probabilities"};
    return wrap(bytes_, fields, settings);
  }
  void expect_plain_answer(EngineWrapper& wrapper, int64_t images) {
    const InputTensor input{"image", image(), nv::DataType::kFLOAT, nv::Dims4(static_cast<int32_t>(images), 1, 8, 8),
                            kDevice};
    std::vector<OutputTensor> outputs;
    ASSERT_TRUE(wrapper.run({input}, outputs)) << wrapperError();
    const std::vector<float> have = values_of<float>(outputs[0]);
    for (int64_t i = 0; i < images * 10; ++i)
      EXPECT_NEAR(have[static_cast<size_t>(i)], wanted_[static_cast<size_t>(i)], 1e-4) << i;
  }

  std::shared_ptr<void> memory_;
  std::string bytes_;
  std::vector<float> wanted_;
};

// S190, S204: each strategy and each feature gives the model's answer.
TEST_F(WrappedModelTest, EachFeature) {
  using Feature = bool (*)(EngineWrapper&);
  const Feature features[] = {
      [](EngineWrapper&) { return true; },
      [](EngineWrapper& wrapper) { return wrapper.setCudaGraphs(true); },
      [](EngineWrapper& wrapper) { return wrapper.setPreAllocatedOutputs(true); },
      [](EngineWrapper& wrapper) { return wrapper.setOutputAllocator(true); },
      [](EngineWrapper& wrapper) { return wrapper.setProfiling(true); },
      [](EngineWrapper& wrapper) { return wrapper.setResourceAllocation(ResourceAllocation::kDYNAMIC); }};
  for (const char* specialization : {"lazy", "eager", "none"})
    for (const char* graphs : {"disabled", "whole_graph_capture"})
      for (const Feature& feature : features) {
        SCOPED_TRACE(std::string(specialization) + " " + graphs + " " + std::to_string(&feature - features));
        const std::unique_ptr<EngineWrapper> wrapper = wrap_model({"", specialization, graphs});
        ASSERT_NE(wrapper, nullptr);
        ASSERT_TRUE(feature(*wrapper)) << wrapperError();
        for (const int64_t images : {2, 2, 2, 4}) expect_plain_answer(*wrapper, images);
      }
}

}  // namespace
}  // namespace lathe
