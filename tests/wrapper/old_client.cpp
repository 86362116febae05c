// SPDX-License-Identifier: Apache-2.0
// For interfaces_test.py: a program of an interface without IRuntimeConfig. Prints what the wrapper has, and runs a
// model.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "NvOnnxParser.h"
#include "lathe_wrapper.h"

namespace {

struct Logger final : nvinfer1::ILogger {
  void log(Severity severity, const char* text) noexcept override {
    if (severity <= Severity::kERROR) std::printf("%s\n", text);
    if (severity == Severity::kWARNING && std::strstr(text, "this interface")) ++warnings;
  }
  int warnings = 0;
};

template <class T>
std::unique_ptr<T> own(T* object) {
  return std::unique_ptr<T>(object);
}

std::string build(const char* model, nvinfer1::ILogger& logger) {
  const auto builder = own(nvinfer1::createInferBuilder(logger));
  const auto network = own(builder->createNetworkV2(0));
  const auto parser = own(nvonnxparser::createParser(*network, logger));
  const auto config = own(builder->createBuilderConfig());
  if (!parser->parseFromFile(model, 0)) return {};
  nvinfer1::IOptimizationProfile* const profile = builder->createOptimizationProfile();
  for (int select = 0; select < 3; ++select)
    profile->setDimensions("image", static_cast<nvinfer1::OptProfileSelector>(select), nvinfer1::Dims4(1, 1, 8, 8));
  config->addOptimizationProfile(profile);
  config->setBuilderOptimizationLevel(0);
  const auto plan = own(builder->buildSerializedNetwork(*network, *config));
  return plan ? std::string(static_cast<const char*>(plan->data()), plan->size()) : std::string();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  Logger logger;
  const lathe::WrapperFeatures features = lathe::wrapperFeatures();
  const bool has[] = {features.runtimeConfig,     features.runtimeCache, features.specialization,
                      features.cudaGraphStrategy, features.captureQuery, features.communicator};
  if (std::accumulate(std::begin(has), std::end(has), 0) == 0) std::printf("none of 6 features\n");
  lathe::EngineFields fields;
  fields.name = "digits";
  fields.target.kind = lathe::EngineTarget::Kind::kCPU;
  fields.inputs = {"image"};
  fields.outputs = {"probabilities"};
  const std::shared_ptr<nvinfer1::IRuntime> runtime(nvinfer1::createInferRuntime(logger));
  const auto engine = lathe::EngineWrapper::create(runtime, build(argv[1], logger), fields,
                                                   {"kernels.cache", "eager", "whole_graph_capture"});
  lathe::EngineRecord record;
  if (!engine || !engine->record(record)) return 1;
  for (const int slot : {lathe::HAS_RUNTIME_CFG_IDX, lathe::RUNTIME_CACHE_PATH_IDX})
    std::printf("%s: '%s'\n", lathe::recordSlotName(slot), record[static_cast<size_t>(slot)].c_str());
  for (const auto allocation : {lathe::ResourceAllocation::kDYNAMIC, lathe::ResourceAllocation::kSTATIC})
    if (!engine->setResourceAllocation(allocation)) return 1;
  std::printf("warnings: %d\n", logger.warnings);
  const std::vector<float> image(64, 0.5f);
  std::vector<lathe::OutputTensor> outputs;
  if (!engine->run({{"image", image.data(), nvinfer1::DataType::kFLOAT, nvinfer1::Dims4(1, 1, 8, 8),
                     nvinfer1::TensorLocation::kHOST}},
                   outputs))
    return 1;
  const auto* const first = static_cast<const float*>(outputs[0].data);
  if (std::fabs(std::accumulate(first, first + 10, 0.0f) - 1) < 1e-5f) std::printf("10 probabilities sum up to 1\n");
  return 0;
}
