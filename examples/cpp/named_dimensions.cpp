// SPDX-License-Identifier: Apache-2.0
// Dimensions with names: sizes that are only known at run time, but known to be equal.
//   named_dimensions
// Two inputs are joined along their columns, which needs as many rows of one as of the other. Both rows are called
// "rows": the builder relies on that, and an execution context refuses sizes that contradict it.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "logger.h"

namespace {

using namespace nvinfer1;

constexpr int64_t kLeft = 2, kRight = 3, kMostRows = 8;

std::unique_ptr<IHostMemory> build(ILogger& logger) {
  std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
  std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
  ITensor* inputs[] = {network->addInput("left", DataType::kFLOAT, Dims2(-1, kLeft)),
                       network->addInput("right", DataType::kFLOAT, Dims2(-1, kRight))};
  for (ITensor* input : inputs) input->setDimensionName(0, "rows");
  IConcatenationLayer* joined = network->addConcatenation(inputs, 2);
  joined->setAxis(1);
  joined->getOutput(0)->setName("joined");
  network->markOutput(*joined->getOutput(0));

  std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
  IOptimizationProfile* profile = builder->createOptimizationProfile();
  for (ITensor* input : inputs) {
    const int64_t columns = input->getDimensions().d[1];
    profile->setDimensions(input->getName(), OptProfileSelector::kMIN, Dims2(1, columns));
    profile->setDimensions(input->getName(), OptProfileSelector::kOPT, Dims2(4, columns));
    profile->setDimensions(input->getName(), OptProfileSelector::kMAX, Dims2(kMostRows, columns));
  }
  config->addOptimizationProfile(profile);
  return std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config));
}

// Whether the engine takes so many rows of each.
bool run(IExecutionContext& context, int64_t left_rows, int64_t right_rows) {
  std::vector<float> left(static_cast<size_t>(left_rows * kLeft), 1),
      right(static_cast<size_t>(right_rows * kRight), 2);
  std::vector<float> joined(static_cast<size_t>(kMostRows * (kLeft + kRight)));
  context.setInputTensorAddress("left", left.data());
  context.setInputTensorAddress("right", right.data());
  context.setTensorAddress("joined", joined.data());
  if (!context.setInputShape("left", Dims2(left_rows, kLeft))) return false;
  if (!context.setInputShape("right", Dims2(right_rows, kRight))) return false;
  if (!context.enqueueV3(nullptr)) return false;
  for (int64_t row = 0; row < left_rows; ++row) {
    for (int64_t column = 0; column < kLeft + kRight; ++column)
      std::printf(" %g", static_cast<double>(joined[static_cast<size_t>(row * (kLeft + kRight) + column)]));
    std::printf("\n");
  }
  return true;
}

}  // namespace

int main() {
  Logger logger;
  const std::unique_ptr<IHostMemory> plan = build(logger);
  if (!plan) return 1;
  std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
  std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
  if (!engine) return 1;
  std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  if (!run(*context, 3, 3)) return 1;
  std::printf("three rows of each: joined\n");
  if (run(*context, 3, 4)) return 1;
  std::printf("three and four rows: refused\n");
  return 0;
}
