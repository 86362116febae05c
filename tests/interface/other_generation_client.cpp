// SPDX-License-Identifier: Apache-2.0
// A program that has its engines made by a runtime library of the other generation, and uses every class of object that
// this makes: other_generation_client <liblathe_lean of the other generation> <that of its own>. Prints what came, for
// generations_cli_test.py.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "interface/callbacks.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using namespace nvinfer1;

namespace {

class Logger final : public ILogger {
 public:
  void log(Severity severity, const char* text) noexcept override {
    if (severity <= Severity::kERROR) ++errors;
    if (severity == Severity::kWARNING) warning = text;
  }
  int errors = 0;
  std::string warning;
};

class Indices final : public IOutputAllocator {
 public:
  void* reallocateOutput(const char*, void*, uint64_t size, uint64_t) noexcept override {
    memory.resize(size);
    return memory.data();
  }
  void notifyShape(const char*, const Dims& dims) noexcept override { shape = dims; }
  std::vector<char> memory;
  Dims shape{};
};

class Reader final : public IStreamReaderV2 {
 public:
  explicit Reader(const IHostMemory& plan) : plan_(plan) {}
  int64_t read(void* to, int64_t bytes, cudaStream_t) noexcept override {
    bytes = std::min<int64_t>(bytes, static_cast<int64_t>(plan_.size()) - at_);
    std::memcpy(to, static_cast<const char*>(plan_.data()) + at_, static_cast<size_t>(bytes));
    at_ += bytes;
    return bytes;
  }
  bool seek(int64_t offset, SeekPosition where) noexcept override {
    at_ = offset + (where == SeekPosition::kCUR ? at_ : where == SeekPosition::kEND ? int64_t(plan_.size()) : 0);
    return true;
  }

 private:
  const IHostMemory& plan_;
  int64_t at_ = 0;
};

// A creator of the V2 family, whose plugins the other generation cannot run.
class OldCreator final : public IPluginCreator {
 public:
  const char* getPluginName() const noexcept override { return "Old"; }
  const char* getPluginVersion() const noexcept override { return "1"; }
  const PluginFieldCollection* getFieldNames() noexcept override { return nullptr; }
  IPluginV2* createPlugin(const char*, const PluginFieldCollection*) noexcept override { return nullptr; }
  IPluginV2* deserializePlugin(const char*, const void*, size_t) noexcept override { return nullptr; }
  void setPluginNamespace(const char*) noexcept override {}
  const char* getPluginNamespace() const noexcept override { return ""; }
};

// y = w x, and where x is not zero.
std::unique_ptr<IHostMemory> build(Logger& logger) {
  const std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
  const std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
  ITensor* x = network->addInput("x", DataType::kFLOAT, Dims{1, {3}});
  const float values[3] = {2, 3, 4};
  const Weights weights{DataType::kFLOAT, values, 3};
  ITensor* w = network->addConstant(Dims{1, {3}}, weights)->getOutput(0);
  network->setWeightsName(weights, "w");
  ITensor* y = network->addElementWise(*x, *w, ElementWiseOperation::kPROD)->getOutput(0);
  y->setName("y");
  network->markOutput(*y);
  ITensor* indices = network->addNonZero(*x, DataType::kINT64)->getOutput(0);
  indices->setName("indices");
  network->markOutput(*indices);
  const std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
  config->setFlag(BuilderFlag::kREFIT);
  config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
  return std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config));
}

void run(IExecutionContext& context) {
  float x[3] = {-1, 0, 5}, y[3] = {};
  Indices indices;
  context.setTensorAddress("x", x);
  context.setTensorAddress("y", y);
  context.setOutputAllocator("indices", &indices);
  if (!context.enqueueV3(nullptr)) return print("runs", false);
  int64_t at[2] = {};
  std::memcpy(at, indices.memory.data(), std::min(sizeof at, indices.memory.size()));
  std::printf("y = %g %g %g, not zero at %lld %lld of %lld\n", y[0], y[1], y[2], static_cast<long long>(at[0]),
              static_cast<long long>(at[1]), static_cast<long long>(indices.shape.d[1]));
  context.setOutputAllocator("indices", nullptr);
}

bool equal(const IHostMemory* one, const IHostMemory& other) {
  return one && one->size() == other.size() && std::memcmp(one->data(), other.data(), other.size()) == 0;
}

void check_engine(ICudaEngine& engine, const IHostMemory& plan) {
  TacticSources sources = 0;
  for (const TacticSource source : {TacticSource::kEDGE_MASK_CONVOLUTIONS, TacticSource::kJIT_CONVOLUTIONS})
    sources |= 1u << static_cast<int>(source);
  print("sources have this interface's numbers", engine.getTacticSources() == sources);
  print("shapes are told", engine.getTensorShape("x").d[0] == 3 && engine.getNbIOTensors() == 3);
  Recorder recorder;
  engine.setErrorRecorder(&recorder);
  print("recorder hears of errors", engine.getTensorIOMode("nothing") == TensorIOMode::kNONE && recorder.errors == 1 &&
                                        engine.getErrorRecorder() == &recorder);
  engine.setErrorRecorder(nullptr);
  print("recorder is let go", recorder.references == 0);
  const std::unique_ptr<IHostMemory> same(engine.serialize());
  print("gives its plan", equal(same.get(), plan));
  const std::unique_ptr<ISerializationConfig> how(engine.createSerializationConfig());
  how->setFlag(SerializationFlag::kEXCLUDE_WEIGHTS);
  const std::unique_ptr<IHostMemory> small(engine.serializeWithConfig(*how));
  print("gives it as told", how->getFlag(SerializationFlag::kEXCLUDE_WEIGHTS) && small && !equal(small.get(), plan));
}

void check_settings(ICudaEngine& engine, ICudaEngine& own) {
  const std::unique_ptr<IRuntimeConfig> config(engine.createRuntimeConfig());
  const std::unique_ptr<IRuntimeCache> cache(config->createRuntimeCache());
  print("no cache at first", config->getRuntimeCache() == nullptr);
  print("cache is set", cache && config->setRuntimeCache(*cache) && config->getRuntimeCache() == cache.get());
  const std::unique_ptr<IHostMemory> kernels(cache->serialize());
  print("cache is written and read", kernels && cache->deserialize(kernels->data(), kernels->size()));
  config->setExecutionContextAllocationStrategy(ExecutionContextAllocationStrategy::kON_PROFILE_CHANGE);
  const std::unique_ptr<IExecutionContext> context(engine.createExecutionContext(config.get()));
  const std::unique_ptr<IRuntimeConfig> again(context->getRuntimeConfig());
  print("context has the settings",
        again && again != config && again->getRuntimeCache() == cache.get() &&
            again->getExecutionContextAllocationStrategy() == ExecutionContextAllocationStrategy::kON_PROFILE_CHANGE);
  const std::unique_ptr<IRuntimeConfig> foreign(own.createRuntimeConfig());
  const std::unique_ptr<IExecutionContext> none(engine.createExecutionContext(foreign.get()));
  const std::unique_ptr<IExecutionContext> neither(own.createExecutionContext(config.get()));
  print("settings of other engines are refused", !none && !neither);
}

void check_context(ICudaEngine& engine, IExecutionContext& context) {
  print("context knows its engine", &context.getEngine() == &engine);
  Profiler profiler;
  print("no profiler at first", context.getProfiler() == nullptr);
  context.setProfiler(&profiler);
  print("profiler is set", context.getProfiler() == &profiler);
  run(context);
  print("profiler is told of layers", profiler.layers >= 2);
  context.setProfiler(nullptr);
  print("profiler is let go", context.getProfiler() == nullptr);
  const std::unique_ptr<IEngineInspector> inspector(engine.createEngineInspector());
  print("inspector takes the context",
        inspector->setExecutionContext(&context) && inspector->getExecutionContext() == &context &&
            inspector->setExecutionContext(nullptr) && inspector->getExecutionContext() == nullptr);
  print("inspector describes the engine",
        std::strlen(inspector->getEngineInformation(LayerInformationFormat::kJSON)) > 9);
}

void check_refit(ICudaEngine& engine) {
  Logger logger;
  const std::unique_ptr<IRefitter> refitter(createInferRefitter(engine, logger));
  print("refitter has its logger", refitter && refitter->getLogger() == &logger);
  const char* name = nullptr;
  print("refitter names weights", refitter->getAllWeights(1, &name) == 1 && std::strcmp(name, "w") == 0);
  const float values[3] = {10, 20, 30};
  print("refits", refitter->setNamedWeights("w", Weights{DataType::kFLOAT, values, 3}) && refitter->refitCudaEngine());
  print("weights are told", refitter->getNamedWeights("w").count == 3);
  print("unknown weights are reported",
        !refitter->setNamedWeights("v", Weights{DataType::kFLOAT, values, 3}) && logger.errors == 1);
#if NV_TENSORRT_MAJOR < 11
  print("ranges are reported", !refitter->setDynamicRange("x", 0, 1) && logger.errors == 2);
  const float least = refitter->getDynamicRangeMin("x"), most = refitter->getDynamicRangeMax("x");
  print("no ranges", least != least && most != most && refitter->getTensorsWithDynamicRange(0, nullptr) == 0);
#endif
}

// What the other generation does not have.
void check_what_is_gone([[maybe_unused]] IRuntime& runtime, [[maybe_unused]] ICudaEngine& engine,
                        [[maybe_unused]] const IHostMemory& plan, [[maybe_unused]] Logger& logger) {
#if NV_TENSORRT_MAJOR < 11
  class OldReader final : public IStreamReader {
   public:
    explicit OldReader(const IHostMemory& plan) : reader_(plan) {}
    int64_t read(void* to, int64_t bytes) override { return reader_.read(to, bytes, nullptr); }

   private:
    Reader reader_;
  } reader(plan);
  const std::unique_ptr<ICudaEngine> read(runtime.deserializeCudaEngine(reader));
  print("reads by an old reader", read != nullptr);
  const std::unique_ptr<IExecutionContext> context(engine.createExecutionContextWithoutDeviceMemory());
  std::vector<char> memory(engine.getDeviceMemorySize() + 256);
  print("sizes agree", engine.getDeviceMemorySize() == size_t(engine.getDeviceMemorySizeV2()) &&
                           engine.getDeviceMemorySizeForProfile(0) == engine.getDeviceMemorySize());
  context->setDeviceMemory(reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory.data()) + 255) / 256 * 256));
  run(*context);
  print("all shapes are specified", context->allInputShapesSpecified());
  print("implicit batch", engine.hasImplicitBatchDimension());
  print("budgets", engine.setWeightStreamingBudget(0) && engine.getWeightStreamingBudget() == 0 &&
                       engine.getMinimumWeightStreamingBudget() == 0);
  const int errors = logger.errors;
  print("values of 32 bits are reported",
        !engine.getProfileTensorValues("x", 0, OptProfileSelector::kOPT) && logger.errors == errors + 1);
#endif
}

void check_registry(IRuntime& runtime, IRuntime& loaded, Logger& logger) {
  OldCreator old;
  int32_t before = -1, count = -1;
  loaded.getPluginRegistry().getAllCreatorsRecursive(&before);
  runtime.getPluginRegistry().registerCreator(static_cast<IPluginCreatorInterface&>(old), "");
  IPluginRegistry& registry = loaded.getPluginRegistry();
  print("a creator of the V2 family is left out",
        registry.getCreator("Old", "1", "") == nullptr && logger.warning.find("'Old', version 1") != std::string::npos);
  registry.getAllCreatorsRecursive(&count);
  print("and not listed", before > 0 && count == before);
  const int errors = logger.errors;
  print("nor registered",
        !registry.registerCreator(static_cast<IPluginCreatorInterface&>(old), "mine") && logger.errors == errors + 1);
  registry.setParentSearchEnabled(false);
  print("registry is the runtime's", !registry.isParentSearchEnabled() && &loaded.getPluginRegistry() == &registry);
  registry.setParentSearchEnabled(true);
  runtime.getPluginRegistry().deregisterCreator(static_cast<IPluginCreatorInterface&>(old));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  Logger logger;
  const std::unique_ptr<IHostMemory> plan = build(logger);
  if (!plan) return 1;
  std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
  std::unique_ptr<IRuntime> loaded(runtime->loadRuntime(argv[1]));
  if (!loaded) return 1;
  print("logger is the application's", loaded->getLogger() == &logger);
  check_registry(*runtime, *loaded, logger);
  Reader reader(*plan);
  std::unique_ptr<ICudaEngine> engine(loaded->deserializeCudaEngine(reader));
  const std::unique_ptr<ICudaEngine> own(runtime->deserializeCudaEngine(plan->data(), plan->size()));
  if (!engine || !own) return 1;
  check_engine(*engine, *plan);
  check_settings(*engine, *own);
  std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  check_context(*engine, *context);
  check_what_is_gone(*loaded, *engine, *plan, logger);
  check_refit(*engine);
  run(*context);
  // A runtime of this generation that one of the other has loaded.
  std::unique_ptr<IRuntime> third(loaded->loadRuntime(argv[2]));
  loaded.reset();
  runtime.reset();
  std::unique_ptr<ICudaEngine> last(third ? third->deserializeCudaEngine(plan->data(), plan->size()) : nullptr);
  third.reset();
  engine.reset();
  run(*context);
  context.reset();
  if (!last) return 1;
  context.reset(last->createExecutionContext());
  last.reset();
  run(*context);
  std::printf("errors: %d\n", logger.errors);
  return 0;
}
