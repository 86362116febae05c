// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs in formats that are not row-major.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

#include "NvInfer.h"
#include "lathe.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // BuilderFlag::kDIRECT_IO

namespace nvinfer1 {
namespace {

struct Silent : ILogger {
  void log(Severity, const char*) noexcept override {}
};

struct FormatCase {
  TensorFormat format;
  int spatial;
  int64_t vector;
  bool channels_last;
  const char* words;
};
std::ostream& operator<<(std::ostream& out, const FormatCase& each) { return out << static_cast<int>(each.format); }

constexpr int64_t kChannels = 5;

// y = 2 x + 1 over x[n, 5, ..., 3] with open n and open spatial dimensions but for the last.
class IoFormats : public testing::TestWithParam<FormatCase> {
 protected:
  Dims dims(int64_t n, int64_t size) const {
    Dims dims{3 + GetParam().spatial - 1, {n, kChannels}};
    for (int d = 2; d < dims.nbDims; ++d) dims.d[d] = d + 1 < dims.nbDims ? size : 3;
    return dims;
  }
  static int64_t volume(const Dims& dims) {
    return std::accumulate(dims.d, dims.d + dims.nbDims, int64_t{1}, std::multiplies<>());
  }
  int64_t groups() const { return (kChannels + GetParam().vector - 1) / GetParam().vector; }
  int64_t elements(const Dims& dims) const { return volume(dims) / kChannels * groups() * GetParam().vector; }
  // Where the element with this number in row-major order lies.
  int64_t place(const Dims& dims, int64_t element) const {
    const int64_t pixels = volume(dims) / dims.d[0] / kChannels, vector = GetParam().vector;
    const int64_t pixel = element % pixels, c = element / pixels % kChannels, n = element / pixels / kChannels;
    if (GetParam().channels_last) return (n * pixels + pixel) * groups() * vector + c;
    return ((n * groups() + c / vector) * pixels + pixel) * vector + c % vector;
  }

  void build(TensorFormat input, TensorFormat output) {
    const std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
    const std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    Dims open = dims(-1, -1), scalar{open.nbDims, {}};
    std::fill_n(scalar.d, scalar.nbDims, 1);
    static const float kTwo = 2, kOne = 1;
    ITensor* x = network->addInput("x", DataType::kFLOAT, open);
    ITensor* two = network->addConstant(scalar, {DataType::kFLOAT, &kTwo, 1})->getOutput(0);
    ITensor* one = network->addConstant(scalar, {DataType::kFLOAT, &kOne, 1})->getOutput(0);
    ITensor* product = network->addElementWise(*x, *two, ElementWiseOperation::kPROD)->getOutput(0);
    ITensor* y = network->addElementWise(*product, *one, ElementWiseOperation::kSUM)->getOutput(0);
    y->setName("y");
    network->markOutput(*y);
    x->setAllowedFormats(1U << static_cast<uint32_t>(input));
    y->setAllowedFormats(1U << static_cast<uint32_t>(output));
    IOptimizationProfile* profile = builder->createOptimizationProfile();
    profile->setDimensions("x", OptProfileSelector::kMIN, dims(1, 1));
    profile->setDimensions("x", OptProfileSelector::kOPT, dims(2, 4));
    profile->setDimensions("x", OptProfileSelector::kMAX, dims(3, 6));
    config->addOptimizationProfile(profile);
    lathe::setBuildBudget(*config, 0);
    const std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    ASSERT_TRUE(plan) << lathe::lastError();
    engine.reset(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    ASSERT_TRUE(engine) << lathe::lastError();
    context.reset(engine->createExecutionContext());
    ASSERT_TRUE(context) << lathe::lastError();
  }

  void run(const Dims& dims, bool input_in_format, bool output_in_format) {
    const int64_t count = volume(dims);
    std::vector<float> x(static_cast<size_t>(input_in_format ? elements(dims) : count),
                         1e30F);  // nobody reads the rest
    std::vector<float> y(static_cast<size_t>(output_in_format ? elements(dims) : count), -1);
    const auto at = [&](bool in_format, int64_t i) { return static_cast<size_t>(in_format ? place(dims, i) : i); };
    for (int64_t i = 0; i < count; ++i) x[at(input_in_format, i)] = static_cast<float>(i);
    ASSERT_TRUE(context->setInputShape("x", dims)) << lathe::lastError();
    ASSERT_TRUE(context->setTensorAddress("x", x.data()) && context->setTensorAddress("y", y.data()));
    ASSERT_TRUE(context->enqueueV3(nullptr)) << lathe::lastError();
    std::vector<float> expected(y.size(), 0);  // what groups are filled up with
    for (int64_t i = 0; i < count; ++i) expected[at(output_in_format, i)] = 2 * static_cast<float>(i) + 1;
    EXPECT_EQ(y, expected);
    const Dims shape = context->getTensorShape("y");
    ASSERT_EQ(shape.nbDims, dims.nbDims);
    EXPECT_TRUE(std::equal(shape.d, shape.d + shape.nbDims, dims.d));
  }

  Silent logger;
  std::unique_ptr<IBuilder> builder{createInferBuilder(logger)};
  std::unique_ptr<IRuntime> runtime{createInferRuntime(logger)};
  std::unique_ptr<ICudaEngine> engine;
  std::unique_ptr<IExecutionContext> context;
};

TEST_P(IoFormats, InputsAreReadInTheirs) {
  build(GetParam().format, TensorFormat::kLINEAR);
  run(dims(2, 4), true, false);
  run(dims(1, 1), true, false);
  run(dims(3, 6), true, false);
}

TEST_P(IoFormats, OutputsAreWrittenInTheirs) {
  build(TensorFormat::kLINEAR, GetParam().format);
  run(dims(2, 4), false, true);
  run(dims(3, 5), false, true);
}

TEST_P(IoFormats, BothAre) {
  build(GetParam().format, GetParam().format);
  run(dims(2, 4), true, true);
  run(dims(3, 6), true, true);
  run(dims(1, 1), true, true);
}

TEST_P(IoFormats, EnginesDescribeThem) {
  const FormatCase& format = GetParam();
  build(format.format, TensorFormat::kLINEAR);
  EXPECT_EQ(engine->getTensorFormat("x"), format.format);
  EXPECT_EQ(engine->getTensorFormat("x", 0), format.format);
  EXPECT_EQ(engine->getTensorFormat("y"), TensorFormat::kLINEAR);
  EXPECT_EQ(engine->getTensorFormatDesc("x"), std::string(format.words) + " FP32 format");
  const bool grouped = format.vector > 1;
  EXPECT_EQ(engine->getTensorVectorizedDim("x"), grouped ? 1 : -1);
  EXPECT_EQ(engine->getTensorComponentsPerElement("x"), grouped ? format.vector : -1);
  EXPECT_EQ(engine->getTensorBytesPerComponent("x"), grouped ? 4 : -1);
  const Dims shape = engine->getTensorShape("x");
  ASSERT_EQ(shape.nbDims, format.spatial + 2);
  EXPECT_EQ(shape.d[0], -1);
  EXPECT_EQ(shape.d[1], kChannels);
  const Dims most = engine->getProfileShape("x", 0, OptProfileSelector::kMAX), wanted = dims(3, 6);
  ASSERT_EQ(most.nbDims, wanted.nbDims);
  EXPECT_TRUE(std::equal(most.d, most.d + most.nbDims, wanted.d));
  Dims other = dims(2, 4);
  other.d[1] = kChannels + 1;
  EXPECT_FALSE(context->setInputShape("x", other));
  ASSERT_TRUE(context->setInputShape("x", dims(2, 4)));
  const Dims strides = context->getTensorStrides("x");
  const int64_t pixels = volume(dims(2, 4)) / 2 / kChannels;
  const int64_t channels = grouped ? groups() : kChannels;
  EXPECT_EQ(strides.d[0], pixels * channels);
  EXPECT_EQ(strides.d[1], format.channels_last ? 1 : pixels);
  EXPECT_EQ(strides.d[strides.nbDims - 1], format.channels_last ? channels : 1);
}

INSTANTIATE_TEST_SUITE_P(
    All, IoFormats,
    testing::Values(FormatCase{TensorFormat::kCHW2, 2, 2, false, "Two wide channel vectorized row major"},
                    FormatCase{TensorFormat::kCHW4, 2, 4, false, "Four wide channel vectorized row major"},
                    FormatCase{TensorFormat::kCHW16, 2, 16, false, "Sixteen wide channel vectorized row major"},
                    FormatCase{TensorFormat::kCHW32, 2, 32, false, "Thirty-two wide channel vectorized row major"},
                    FormatCase{TensorFormat::kCDHW32, 3, 32, false,
                               "Thirty-two wide channel vectorized row major with 3 spatial dimensions,"},
                    FormatCase{TensorFormat::kHWC, 2, 1, true, "Channel major"},
                    FormatCase{TensorFormat::kHWC8, 2, 8, true, "Channel major, where channels are a multiple of 8,"},
                    FormatCase{TensorFormat::kHWC16, 2, 16, true,
                               "Channel major, where channels are a multiple of 16,"},
                    FormatCase{TensorFormat::kDHWC, 3, 1, true, "Channel major with 3 spatial dimensions"},
                    FormatCase{TensorFormat::kDHWC8, 3, 8, true,
                               "Channel major with 3 spatial dimensions, where channels are a multiple of 8,"}),
    [](const testing::TestParamInfo<FormatCase>& info) {
      return "format" + std::to_string(static_cast<int>(info.param.format));
    });

// Convolutions compute in channels-last memory: they read and write the application's, and nothing is copied.
TEST(IoFormatsOfConvolutions, AreReformatFree) {
  Silent logger;
  const std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
  const std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
  const std::vector<float> weights(24 * 12 * 9, 0.1F);
  const auto layers = [&](TensorFormat format) {
    const std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
    const std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims4(1, 12, 16, 16));
    const Weights kernel{DataType::kFLOAT, weights.data(), static_cast<int64_t>(weights.size())};
    ITensor* y = network->addConvolutionNd(*x, 24, Dims2(3, 3), kernel, Weights{})->getOutput(0);
    network->markOutput(*y);
    for (ITensor* tensor : {x, y}) tensor->setAllowedFormats(1U << static_cast<uint32_t>(format));
    lathe::setBuildBudget(*config, 0);
    const std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    const std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    return engine->getNbLayers();
  };
  EXPECT_EQ(layers(TensorFormat::kHWC), 1);
  EXPECT_GT(layers(TensorFormat::kLINEAR), 1);
}

// BuilderFlag::kDIRECT_IO is about tensors whose formats the application chose.
TEST(IoFormats, DirectInputsAndOutputsAreNotReordered) {
  Silent logger;
  const std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
  const std::vector<float> weights(24 * 12 * 9, 0.1F);
  const auto builds = [&](TensorFormat input, TensorFormat output, bool chosen) {
    const std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
    const std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    config->setFlag(BuilderFlag::kDIRECT_IO);
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims4(1, 12, 16, 16));
    const Weights kernel{DataType::kFLOAT, weights.data(), static_cast<int64_t>(weights.size())};
    ITensor* y = network->addConvolutionNd(*x, 24, Dims2(3, 3), kernel, Weights{})->getOutput(0);
    y->setName("y");
    network->markOutput(*y);
    if (chosen) {
      x->setAllowedFormats(1U << static_cast<uint32_t>(input));
      y->setAllowedFormats(1U << static_cast<uint32_t>(output));
    }
    lathe::setBuildBudget(*config, 0);
    return std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config)) != nullptr;
  };
  EXPECT_TRUE(builds(TensorFormat::kHWC, TensorFormat::kHWC, true)) << lathe::lastError();
  EXPECT_TRUE(builds(TensorFormat::kLINEAR, TensorFormat::kLINEAR, false)) << lathe::lastError();
  EXPECT_FALSE(builds(TensorFormat::kLINEAR, TensorFormat::kHWC, true));
  const std::string input = lathe::lastError();
  EXPECT_NE(input.find("BuilderFlag::kDIRECT_IO"), std::string::npos) << input;
  EXPECT_NE(input.find("'x' (step"), std::string::npos) << input;
  EXPECT_EQ(input.find("'y'"), std::string::npos) << input;
  EXPECT_FALSE(builds(TensorFormat::kHWC, TensorFormat::kLINEAR, true));
  EXPECT_NE(std::string(lathe::lastError()).find("'y' (step"), std::string::npos) << lathe::lastError();
}

// What a format needs is told when the network is built.
TEST(IoFormatRefusals, SayWhatIsMissing) {
  Silent logger;
  const std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
  const auto message = [&](Dims dims, TensorFormat format, bool debug) {
    const std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
    const std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    ITensor* x = network->addInput("x", DataType::kFLOAT, dims);
    ITensor* y = network->addActivation(*x, ActivationType::kRELU)->getOutput(0);
    network->markOutput(*y);
    if (debug) network->markDebug(*y);
    (debug ? y : x)->setAllowedFormats(1U << static_cast<uint32_t>(format));
    lathe::setBuildBudget(*config, 0);
    const std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    EXPECT_FALSE(plan);
    return std::string(lathe::lastError());
  };
  EXPECT_NE(message(Dims2(4, 4), TensorFormat::kCHW32, false).find("at least 3 dimensions"), std::string::npos);
  EXPECT_NE(message(Dims4(1, -1, 4, 4), TensorFormat::kHWC8, false).find("number of channels is fixed"),
            std::string::npos);
  EXPECT_NE(message(Dims4(1, 3, 4, 4), TensorFormat::kHWC8, true).find("debug listeners"), std::string::npos);
}

}  // namespace
}  // namespace nvinfer1
