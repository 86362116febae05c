// SPDX-License-Identifier: Apache-2.0
// What parsing takes of memory, and that models in buffers are not needed afterwards.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "api/target.h"
#include "lathe.h"
#include "onnx/model_bytes.h"
#include "sanitized.h"

namespace nvinfer1 {
namespace {

using namespace lathe::onnx;  // what writes the models

constexpr int64_t kCount = 4;                  // so many matrices
const int64_t kSize = on_gpu() ? 1024 : 2048;  // the emulator is slow

struct Silent : ILogger {
  void log(Severity, const char*) noexcept override {}
};

size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// y = x w0 w1 ...; each matrix doubles. `shift` moves all content by as many bytes.
std::string products(size_t shift) {
  std::vector<float> twice(static_cast<size_t>(kSize * kSize));
  for (int64_t i = 0; i < kSize; ++i) twice[static_cast<size_t>(i * kSize + i)] = 2;
  std::vector<std::string> nodes, weights;
  std::vector<std::string> names(kCount + 1, "x");
  for (size_t i = 0; i < kCount; ++i) {
    const std::string w = "w" + std::to_string(i) + std::string(shift, '_');
    names[i + 1] = i + 1 < kCount ? "t" + std::to_string(i) : "y";
    nodes.push_back(node("MatMul", {names[i].c_str(), w.c_str()}, {names[i + 1].c_str()}));
    weights.push_back(raw_tensor(w, 1, {kSize, kSize}, twice));
  }
  return model(graph({nodes, weights, {value_info("x", 1, {1, kSize})}, {value_info("y", 1, {1, kSize})}}));
}

TEST(ParserMemory, ABufferIsCopiedOnceAndMayGo) {
  for (const size_t shift : {0U, 1U, 2U, 3U}) {
    SCOPED_TRACE(shift);
    const std::string bytes = products(shift);
    void* const pages = mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(pages, bytes.data(), bytes.size());
    Silent logger;
    const std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    const std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
    const std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
    const size_t before = resident_bytes();
    ASSERT_TRUE(parser->parse(pages, bytes.size())) << lathe::lastError();
    if (!kIsSanitized) {
      EXPECT_LE(resident_bytes(), before + bytes.size() + bytes.size() / 5);
    }
    munmap(pages, bytes.size());
    const std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    lathe::setBuildBudget(*config, 0);
    const std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    ASSERT_TRUE(plan) << lathe::lastError();
    const std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
    const std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    ASSERT_TRUE(engine) << lathe::lastError();
    const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
    std::vector<float> x(static_cast<size_t>(kSize), 1), y(x.size());
    ASSERT_TRUE(context->setTensorAddress("x", x.data()) && context->setTensorAddress("y", y.data()));
    ASSERT_TRUE(context->enqueueV3(nullptr)) << lathe::lastError();
    EXPECT_EQ(y, std::vector<float>(y.size(), 1 << kCount));
  }
}

}  // namespace
}  // namespace nvinfer1
