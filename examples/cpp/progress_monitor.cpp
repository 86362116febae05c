// SPDX-License-Identifier: Apache-2.0
// A build that shows how far it is, and can be given up.
//   progress_monitor model.onnx [STEPS]
// prints each phase with a bar, and asks the builder to stop after so many steps; without a number it lets it end.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "logger.h"

namespace {

using namespace nvinfer1;

// The builder calls it from its own threads, from several at a time.
class Progress final : public IProgressMonitor {
 public:
  explicit Progress(int most) : most_(most) {}

  void phaseStart(const char* phase, const char* parent, int32_t steps) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto outer = parent ? phases_.find(parent) : phases_.end();
    phases_[phase] = {steps, outer == phases_.end() ? 0 : outer->second.depth + 1};
  }

  bool stepComplete(const char* phase, int32_t step) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Phase& known = phases_[phase];
    const int done = known.steps > 0 ? 20 * (step + 1) / known.steps : 0;
    std::printf("%*s[%.*s%.*s] %s\n", 2 * known.depth, "", done, "####################", 20 - done,
                "                    ", phase);
    return most_ < 0 || ++steps_ < most_;
  }

  void phaseFinish(const char* phase) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    phases_.erase(phase);
  }

 private:
  struct Phase {
    int steps = 0, depth = 0;
  };
  std::mutex mutex_;
  std::map<std::string, Phase> phases_;  // those that have begun and not ended
  int most_, steps_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s MODEL.onnx [STEPS]\n", argv[0]);
    return 2;
  }
  Logger logger;
  Progress progress(argc > 2 ? std::atoi(argv[2]) : -1);
  std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
  std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
  std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
  if (!parser->parseFromFile(argv[1], static_cast<int>(ILogger::Severity::kWARNING))) return 1;
  std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
  IOptimizationProfile* profile = builder->createOptimizationProfile();
  const ITensor* input = network->getInput(0);
  Dims dims = input->getDimensions();
  dims.d[0] = 1;
  for (const auto select : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX})
    profile->setDimensions(input->getName(), select, dims);
  config->addOptimizationProfile(profile);
  config->setProgressMonitor(&progress);
  const std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
  if (plan)
    std::printf("built: %zu bytes\n", plan->size());
  else
    std::printf("given up: there is no plan\n");
  return 0;
}
