// SPDX-License-Identifier: Apache-2.0
// A timing cache that can be edited: the builder keeps every tactic that it measured, and takes the one it is told to.
//   editable_timing_cache [CACHE]
// builds a product of matrices, makes the builder take the slowest tactic that it measured, and writes the cache to a
// file.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "logger.h"

namespace {

using namespace nvinfer1;

constexpr int64_t kRows = 96, kInner = 256, kColumns = 64;

// The builder tells in lines of log at INFO which tactics an entry of the cache may be changed to, the fastest first:
//   [EditableTimingCache] Autotuning op <layer>(key: 0x<32 digits>): <problem>
//   [EditableTimingCache] tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash
//   [EditableTimingCache] 0, <time>, 1.00, <predicted time/time>, <name>, 0x<16 digits>
//   [EditableTimingCache] The selected tactic is (tactic hash, cost(in ms)):0x<16 digits>, <time>
class TacticLog final : public ILogger {
 public:
  void log(Severity severity, const char* message) noexcept override {
    if (severity <= Severity::kWARNING) std::fprintf(stderr, "%s\n", message);
    unsigned long long hash = 0;
    if (std::sscanf(message, "[EditableTimingCache] %*d, %*f, %*f, %*f, %*[^,], 0x%llx", &hash) != 1) return;
    std::printf("%s\n", message);
    tactics.push_back(hash);
  }
  std::vector<uint64_t> tactics;
};

// What the engine's layers are, as the inspector tells.
std::string build(IBuilder& builder, INetworkDefinition& network, IBuilderConfig& config, ILogger& logger) {
  const std::unique_ptr<IHostMemory> plan(builder.buildSerializedNetwork(network, config));
  const std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
  const std::unique_ptr<ICudaEngine> engine(plan ? runtime->deserializeCudaEngine(plan->data(), plan->size())
                                                 : nullptr);
  if (!engine) return "";
  const std::unique_ptr<IEngineInspector> inspector(engine->createEngineInspector());
  return inspector->getEngineInformation(LayerInformationFormat::kJSON);
}

}  // namespace

int main(int argc, char** argv) {
  TacticLog logger;
  const std::vector<float> weights(static_cast<size_t>(kInner * kColumns), 0.01F);
  std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
  std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
  ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(kRows, kInner));
  ITensor* w = network->addConstant(Dims2(kInner, kColumns), {DataType::kFLOAT, weights.data(), kInner * kColumns})
                   ->getOutput(0);
  ITensor* y = network->addMatrixMultiply(*x, MatrixOperation::kNONE, *w, MatrixOperation::kNONE)->getOutput(0);
  network->markOutput(*y);

  std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
  config->setFlag(BuilderFlag::kEDITABLE_TIMING_CACHE);
  config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);  // so that the inspector names tactics
  std::unique_ptr<ITimingCache> cache(config->createTimingCache(nullptr, 0));
  config->setTimingCache(*cache, false);
  if (build(*builder, *network, *config, logger).empty() || logger.tactics.empty()) return 1;

  TimingCacheKey key;
  if (cache->queryKeys(&key, 1) != 1) return 1;
  const uint64_t slowest = logger.tactics.back();
  if (!cache->update(key, {slowest, cache->query(key).timingMSec})) return 1;
  char wanted[64];
  std::snprintf(wanted, sizeof wanted, "\"TacticValue\": \"0x%016llx\"", static_cast<unsigned long long>(slowest));
  const bool taken = build(*builder, *network, *config, logger).find(wanted) != std::string::npos;
  std::printf("tactic 0x%016llx was asked for and %s\n", static_cast<unsigned long long>(slowest),
              taken ? "is used" : "is not used");
  if (argc > 1) {
    const std::unique_ptr<IHostMemory> bytes(cache->serialize());
    std::ofstream(argv[1], std::ios::binary)
        .write(static_cast<const char*>(bytes->data()), static_cast<std::streamsize>(bytes->size()));
  }
  return taken ? 0 : 1;
}
