// SPDX-License-Identifier: Apache-2.0
// What the library calls of an application's: logger, error recorder, progress monitor, plugin, output allocator,
// profiler, debug listener. Some of their tables differ between generations. Prints what came, for
// generations_cli_test.py. callbacks_client [library whose runtime loads and runs the engine]
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "interface/callbacks.h"
#include "plugin/test_plugins.h"

using namespace nvinfer1;

namespace {

int g_lines = 0;

class Logger final : public ILogger {
 public:
  void log(Severity severity, const char*) noexcept override { g_lines += severity <= Severity::kVERBOSE ? 1 : 0; }
};

class Progress final : public IProgressMonitor {
 public:
  void phaseStart(const char*, const char*, int32_t) noexcept override { ++open; }
  bool stepComplete(const char*, int32_t) noexcept override { return ++steps > 0; }
  void phaseFinish(const char*) noexcept override { --open; }
  int open = 0, steps = 0;
};

class Outputs final : public IOutputAllocator {
 public:
  void* reallocateOutput(const char*, void*, uint64_t size, uint64_t) noexcept override {
    memory.resize(size / sizeof(float));
    return memory.data();
  }
  void notifyShape(const char*, const Dims& dims) noexcept override { length = dims.d[0]; }
  std::vector<float> memory;
  int64_t length = 0;
};

class Listener final : public IDebugListener {
 public:
  bool processDebugTensor(const void* address, TensorLocation, DataType, const Dims&, const char* name,
                          cudaStream_t) override {
    seen = std::string(name) + " " + std::to_string(static_cast<const float*>(address)[0]);
    return true;
  }
  std::string seen;
};

std::unique_ptr<IHostMemory> build(Logger& logger, Progress& progress) {
  const std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
  Recorder recorder;
  builder->setErrorRecorder(&recorder);
  builder->setMaxThreads(-1);
  print("recorder hears of errors", recorder.errors == 1 && recorder.references == 1);
  builder->setErrorRecorder(nullptr);
  print("recorder is let go", recorder.references == 0);

  const std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
  ITensor* x = network->addInput("x", DataType::kFLOAT, Dims{1, {-1}});
  ScalePlugin plugin("scale", 3, Lie::none);
  ITensor* scaled = network->addPluginV3(&x, 1, nullptr, 0, plugin)->getOutput(0);
  scaled->setName("scaled");
  network->markDebug(*scaled);
  ITensor* y = network->addUnary(*scaled, UnaryOperation::kABS)->getOutput(0);
  y->setName("y");
  network->markOutput(*y);
  const std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
  IOptimizationProfile* profile = builder->createOptimizationProfile();
  for (const auto& [at, length] : {std::pair(OptProfileSelector::kMIN, 1), std::pair(OptProfileSelector::kOPT, 4),
                                   std::pair(OptProfileSelector::kMAX, 8)})
    profile->setDimensions("x", at, Dims{1, {length}});
  config->addOptimizationProfile(profile);
  config->setProgressMonitor(&progress);
  return std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config));
}

}  // namespace

int main(int argc, char** argv) {
  Logger logger;
  Progress progress;
  const std::unique_ptr<IHostMemory> plan = build(logger, progress);
  if (!plan) return 1;
  print("progress is told", progress.steps > 0 && progress.open == 0);

  const std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
  TestCreator<ScalePlugin> creator("scale");
  print("creator is registered", runtime->getPluginRegistry().registerCreator(creator, "test"));
  const std::unique_ptr<IRuntime> loaded(argc > 1 ? runtime->loadRuntime(argv[1]) : nullptr);
  if (argc > 1 && !loaded) return 1;
  IRuntime& loader = loaded ? *loaded : *runtime;
  const std::unique_ptr<ICudaEngine> engine(loader.deserializeCudaEngine(plan->data(), plan->size()));
  if (!engine) return 1;
  std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  Outputs outputs;
  Profiler profiler;
  Listener listener;
  float x[3] = {-1, 2, -3};
  context->setInputShape("x", Dims{1, {3}});
  context->setTensorAddress("x", x);
  context->setOutputAllocator("y", &outputs);
  context->setProfiler(&profiler);
  context->setDebugListener(&listener);
  context->setTensorDebugState("scaled", true);
  print("runs", context->enqueueV3(nullptr));
  std::printf("y =");
  for (int64_t i = 0; i < outputs.length; ++i) std::printf(" %g", outputs.memory[static_cast<size_t>(i)]);
  std::printf("\nlistener: %s\n", listener.seen.c_str());
  print("profiler is told of layers", profiler.layers >= 2);
  print("logger has lines", g_lines > 0);
  context.reset();
  return 0;
}
