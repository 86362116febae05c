// SPDX-License-Identifier: Apache-2.0
// Every allocation behind the public interface may fail, from the model's bytes to the result: a call that fails
// returns null or false and reports exactly once; nothing is thrown (its functions are noexcept, so that would end the
// test).
#include <filesystem>
#include <fstream>
#include <memory>

#include "NvOnnxParser.h"
#include "lathe.h"
#include "onnx/model_bytes.h"
#include "robustness/allocation_sweep.h"
#include "robustness/count_errors.h"

namespace nvinfer1 {
namespace {

using lathe::CountErrors;
using lathe::onnx::graph;
using lathe::onnx::ints_attribute;
using lathe::onnx::model;
using lathe::onnx::node;
using lathe::onnx::value_info;

std::string convolution_model() {
  const std::vector<float> weights(size_t{8} * 4 * 3 * 3, 0.25f), scale(36 * 2, 0.5f);
  return model(
      graph({{node("Conv", {"x", "w"}, {"c"}, {ints_attribute("pads", {1, 1, 1, 1})}), node("Relu", {"c"}, {"r"}),
              node("Reshape", {"r", "shape"}, {"m"}), node("MatMul", {"m", "v"}, {"p"}), node("Softmax", {"p"}, {"y"})},
             {lathe::onnx::raw_tensor<float>("w", 1, {8, 4, 3, 3}, weights),
              lathe::onnx::raw_tensor<float>("v", 1, {36, 2}, scale),
              lathe::onnx::raw_tensor<int64_t>("shape", 7, {2}, {8, 36})},
             {value_info("x", 1, {1, 4, 6, 6})},
             {value_info("y", 1, {8, 2})}}));
}

std::unique_ptr<IHostMemory> build(ILogger& logger, const std::string& bytes) {
  const std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
  if (!builder || !builder->setMaxThreads(1)) return nullptr;  // another thread gives back what started it
  const std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
  if (!network) return nullptr;
  const std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
  if (!parser || !parser->parse(bytes.data(), bytes.size())) return nullptr;
  const std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
  // Without measurements the same allocations are made every time.
  if (!config || !lathe::setBuildBudget(*config, 0) || !lathe::setCpuThreads(*config, 1)) return nullptr;
  return std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config));
}

bool run(ILogger& logger, const IHostMemory& plan, const float* x, float* y) {
  const std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
  if (!runtime || !lathe::setCpuThreads(*runtime, 1)) return false;
  const std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan.data(), plan.size()));
  if (!engine) return false;
  const std::unique_ptr<IHostMemory> again(engine->serialize());
  if (!again) return false;
  const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  return context && context->setInputShape("x", Dims4(1, 4, 6, 6)) && context->setInputTensorAddress("x", x) &&
         context->setOutputTensorAddress("y", y) && context->enqueueV3(nullptr);
}

// What the calling thread keeps for good: the text of its last error.
void keep_a_long_error(CountErrors& logger) {
  const std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
  const std::string nonsense(64, 'x');
  EXPECT_EQ(runtime->deserializeCudaEngine(nonsense.data(), nonsense.size()), nullptr);
}

// S98.
TEST(ApiAllocationFailure, FromModelToPlan) {
  CountErrors logger;
  keep_a_long_error(logger);
  const std::string bytes = convolution_model();
  EXPECT_GT(lathe::sweep_allocations([&] {
              logger.errors = 0;
              const bool done = build(logger, bytes) != nullptr;
              EXPECT_EQ(logger.errors, done ? 0 : 1);
              return done;
            }),
            1000);
}

// The old file stays or all of the new is there, as the call says; nothing is left beside it. The last allocations, for
// those before it make the plan.
TEST(ApiAllocationFailure, FilesAreReplacedOrNot) {
  namespace fs = std::filesystem;
  CountErrors logger;
  keep_a_long_error(logger);
  const std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
  ASSERT_TRUE(builder->setMaxThreads(1));
  const std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
  ITensor* const x = network->addInput("x", DataType::kFLOAT, Dims2(2, 3));
  network->markOutput(*network->addActivation(*x, ActivationType::kRELU)->getOutput(0));
  const std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
  ASSERT_TRUE(lathe::setBuildBudget(*config, 0) && lathe::setCpuThreads(*config, 1));
  const fs::path folder = fs::path(testing::TempDir()) / "replaced_files", path = folder / "engine";
  fs::remove_all(folder);
  fs::create_directory(folder);
  const auto build = [&] { return lathe::buildEngineFile(*builder, *network, *config, path.c_str()); };
  const auto content = [&] {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  constexpr long kAll = 1L << 40, kLast = 200;
  for (int warm_up = 0; warm_up < 2; ++warm_up) ASSERT_EQ(lathe::attempt(kAll, build).outcome, lathe::Outcome::done);
  const long count = kAll - lathe::allocation_counter.until_failure;
  const std::string whole = content(), old = "old";
  ASSERT_GT(count, kLast);
  int kept = 0;
  for (long n = count - kLast; n <= count && !HasFailure(); ++n) {
    ASSERT_TRUE(lathe::saveFile(old.data(), old.size(), path.c_str()));
    logger.errors = 0;
    const lathe::Attempt attempt = lathe::attempt(n, build);
    const bool done = attempt.outcome == lathe::Outcome::done;
    EXPECT_EQ(content(), done ? whole : old) << "allocation " << n << " of " << count;
    EXPECT_EQ(logger.errors, done ? 0 : 1);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
    EXPECT_TRUE(done || attempt.failed);
    kept += !done;
  }
  EXPECT_GT(kept, 0);
  fs::remove_all(folder);
}

TEST(ApiAllocationFailure, FromPlanToResult) {
  CountErrors logger;
  keep_a_long_error(logger);
  const std::unique_ptr<IHostMemory> plan = build(logger, convolution_model());
  ASSERT_NE(plan, nullptr);
  const std::vector<float> x(size_t{4} * 6 * 6, 1.0f);
  std::vector<float> y(size_t{8} * 2), expected;
  EXPECT_GT(lathe::sweep_allocations([&] {
              logger.errors = 0;
              const bool done = run(logger, *plan, x.data(), y.data());
              EXPECT_EQ(logger.errors, done ? 0 : 1);
              if (done && expected.empty()) expected = y;
              EXPECT_TRUE(!done || y == expected);
              return done;
            }),
            100);
}

TEST(ApiAllocationFailure, Reports) {
  CountErrors logger;
  keep_a_long_error(logger);
  const std::unique_ptr<IHostMemory> plan = build(logger, convolution_model());
  ASSERT_NE(plan, nullptr);
  const std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
  const std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
  ASSERT_NE(engine, nullptr);
  const auto given = [](IHostMemory* text) { return std::unique_ptr<IHostMemory>(text) != nullptr; };
  EXPECT_GT(lathe::sweep_allocations([&] { return given(lathe::planJson(plan->data(), plan->size())); }), 100);
  EXPECT_GT(lathe::sweep_allocations([&] { return given(lathe::doctorJson()); }), 20);
  EXPECT_GT(lathe::sweep_allocations([&] {
              logger.errors = 0;
              const std::unique_ptr<IEngineInspector> inspector(engine->createEngineInspector());
              const bool done = inspector && *inspector->getEngineInformation(LayerInformationFormat::kJSON) != 0;
              EXPECT_EQ(logger.errors, done ? 0 : 1);
              return done;
            }),
            5);
}

}  // namespace
}  // namespace nvinfer1
