// SPDX-License-Identifier: Apache-2.0
// Device code compiles for every architecture: each header by itself, and the kernels of a network in each precision.
// NVRTC is NVIDIA's own; no GPU is needed.
#include <gtest/gtest.h>

#include <cstdlib>

#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "device/cuda/nvrtc.h"
#include "device/cuda/nvrtc_compiler.h"
#include "kernels/cuda/headers.h"
#include "lathe.h"

namespace lathe::cuda {
namespace {

struct LastError final : nvinfer1::ILogger {
  void log(Severity severity, const char* message) noexcept override {
    if (severity <= Severity::kERROR) text = message;
  }
  std::string text;
};

class Architectures : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const auto found = nvrtc();
    if (found) return;
    ASSERT_EQ(std::getenv("CI"), nullptr) << found.error().to_string();
    GTEST_SKIP() << found.error().to_string();
  }
  std::string target() const { return fmt::format("cuda-sm_{}", GetParam()); }
};

TEST_P(Architectures, EveryHeaderAlone) {
  const auto compiler = NvrtcCompiler::create(target(), headers(), default_cache_folder());
  ASSERT_TRUE(compiler) << compiler.error().to_string();
  for (const Header& header : headers()) {
    const std::string source =
        fmt::format("#include \"{}\"\nextern \"C\" __global__ void lathe_kernel() {{}}\n", header.name);
    const auto code = (*compiler)->compile(source);
    EXPECT_TRUE(code) << header.name << ": " << code.error().to_string();
  }
}

TEST_P(Architectures, EveryPrecisionOfANetwork) {
  LastError error;
  const std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(error));
  const std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(0));
  const std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, error));
  ASSERT_TRUE(parser->parseFromFile(LATHE_SOURCE_DIR "/examples/digits/digits.onnx", 0)) << error.text;
  for (const auto precision : {nvinfer1::DataType::kFLOAT, nvinfer1::DataType::kHALF, nvinfer1::DataType::kBF16}) {
    const std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
    ASSERT_TRUE(setTarget(*config, target().c_str())) << lastError();
    ASSERT_TRUE(setPrecision(*config, precision));
    setBuildBudget(*config, 0);
    const std::unique_ptr<nvinfer1::IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    EXPECT_NE(plan, nullptr) << static_cast<int>(precision) << ": " << error.text;
  }
}

// Kernels whose templates are instantiated with what they compute as they read.
TEST_P(Architectures, ProgramsBeforeKernels) {
  using nvinfer1::ElementWiseOperation;
  for (const auto type : {nvinfer1::DataType::kFLOAT, nvinfer1::DataType::kHALF}) {
    LastError error;
    const std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(error));
    const std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(0));
    nvinfer1::ITensor& x = *network->addInput("x", type, nvinfer1::Dims4{2, 8, 16, 24});
    nvinfer1::ITensor& y = *network->addInput("y", type, nvinfer1::Dims4{2, 1, 16, 24});
    const auto expression = [&](ElementWiseOperation op) { return network->addElementWise(x, y, op)->getOutput(0); };
    const auto mark = [&](nvinfer1::ILayer* layer) { network->markOutput(*layer->getOutput(0)); };
    mark(network->addReduce(*expression(ElementWiseOperation::kPROD), nvinfer1::ReduceOperation::kAVG, 1u << 3, true));
    mark(network->addReduce(*expression(ElementWiseOperation::kSUM), nvinfer1::ReduceOperation::kMAX, 1u << 0, true));
    for (const bool rows : {false, true}) {
      nvinfer1::ISoftMaxLayer* softmax =
          network->addSoftMax(*expression(rows ? ElementWiseOperation::kMAX : ElementWiseOperation::kMIN));
      softmax->setAxes(1u << (rows ? 3 : 1));
      mark(softmax);
    }
    const std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
    ASSERT_TRUE(setTarget(*config, target().c_str())) << lastError();
    setBuildBudget(*config, 0);
    const std::unique_ptr<nvinfer1::IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    EXPECT_NE(plan, nullptr) << static_cast<int>(type) << ": " << error.text;
  }
}

// One of each family; the others of a family have its instructions.
INSTANTIATE_TEST_SUITE_P(Each, Architectures, testing::Values(75, 80, 86, 90, 100, 120));

}  // namespace
}  // namespace lathe::cuda
