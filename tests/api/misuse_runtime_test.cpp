// SPDX-License-Identifier: Apache-2.0
// Calls that no program should make of runtimes, engines, contexts and the registry of plugins.
#include <cmath>
#include <cstdlib>

#include "api/misuse_fixture.h"

namespace nvinfer1 {
namespace {

// S106.
TEST_F(MisuseTest, RuntimeAndEngine) {
  const auto plan = build();
  refuses("null plan", [&] { return runtime->deserializeCudaEngine(nullptr, 8); });
  refuses("nonsense", [&] { return runtime->deserializeCudaEngine("nonsense", 8); });
  refuses("half a plan", [&] { return runtime->deserializeCudaEngine(plan->data(), plan->size() / 2); });
  refuses("threads", [&] { return runtime->setMaxThreads(0); });
  refuses("runtime", [&] { return runtime->loadRuntime(nullptr); });
  refuses("no file", [&] { return lathe::loadEngineFile(*runtime, "/nowhere.engine"); });
  refuses("null file", [&] { return lathe::loadEngineFile(*runtime, nullptr); });
  notes("threads", [&] { return lathe::setCpuThreads(*runtime, -1); });
  const auto engine = load(*plan);
  const auto min = OptProfileSelector::kMIN;
  for (const char* name : {static_cast<const char*>(nullptr), "nobody", ""}) {
    refuses("shape", [&] { return engine->getTensorShape(name); });
    refuses("type", [&] { return engine->getTensorDataType(name); });
    refuses("location", [&] { return engine->getTensorLocation(name); });
    refuses("shape inference", [&] { return engine->isShapeInferenceIO(name); });
    refuses("mode", [&] { return engine->getTensorIOMode(name); });
    refuses("bytes", [&] { return engine->getTensorBytesPerComponent(name); });
    refuses("components", [&] { return engine->getTensorComponentsPerElement(name); });
    refuses("format", [&] { return engine->getTensorFormat(name); });
    refuses("format text", [&] { return engine->getTensorFormatDesc(name); });
    refuses("vectorized", [&] { return engine->getTensorVectorizedDim(name); });
    refuses("profile shape", [&] { return engine->getProfileShape(name, 0, min); });
    refuses("profile values", [&] { return engine->getProfileTensorValuesV2(name, 0, min); });
    refuses("debug", [&] { return engine->isDebugTensor(name); });
    refuses("alias", [&] { return engine->getAliasedInputTensor(name); });
  }
  for (const int32_t profile : {-1, 1, 99}) {
    refuses("profile shape", [&] { return engine->getProfileShape("x", profile, min); });
    refuses("profile values", [&] { return engine->getProfileTensorValuesV2("x", profile, min); });
    refuses("memory", [&] { return engine->getDeviceMemorySizeForProfileV2(profile); });
    refuses("format", [&] { return engine->getTensorFormat("x", profile); });
    refuses("format text", [&] { return engine->getTensorFormatDesc("x", profile); });
    refuses("bytes", [&] { return engine->getTensorBytesPerComponent("x", profile); });
    refuses("components", [&] { return engine->getTensorComponentsPerElement("x", profile); });
    refuses("vectorized", [&] { return engine->getTensorVectorizedDim("x", profile); });
  }
  refuses("selector", [&] { return engine->getProfileShape("x", 0, no_such<OptProfileSelector>()); });
  refuses("selector", [&] { return engine->getProfileTensorValuesV2("x", 0, no_such<OptProfileSelector>()); });
  refuses("output's profile", [&] { return engine->getProfileShape("y", 0, min); });
  refuses("name", [&] { return engine->getIOTensorName(2); });
  refuses("name", [&] { return engine->getIOTensorName(-1); });
  refuses("stat", [&] { return engine->getEngineStat(static_cast<EngineStat>(7)); });
  answers("stat", [&] { EXPECT_EQ(engine->getEngineStat(EngineStat::kSTRIPPED_WEIGHTS_SIZE), -1); });
  refuses("budget", [&] { return engine->setWeightStreamingBudgetV2(1); });
  refuses("strategy", [&] { return engine->createExecutionContext(no_such<ExecutionContextAllocationStrategy>()); });
  const std::unique_ptr<ISerializationConfig> serialization(engine->createSerializationConfig());
  refuses("flags", [&] { return serialization->setFlags(~0u); });
  const std::unique_ptr<IEngineInspector> inspector(engine->createEngineInspector());
  const auto text = LayerInformationFormat::kONELINE;
  refuses("layer", [&] { return inspector->getLayerInformation(-1, text); });
  refuses("layer", [&] { return inspector->getLayerInformation(99, text); });
  refuses("format", [&] { return inspector->getLayerInformation(0, no_such<LayerInformationFormat>()); });
  refuses("format", [&] { return inspector->getEngineInformation(no_such<LayerInformationFormat>()); });
  notes("compare", [&] { return lathe::compareJson(*engine, nullptr, nullptr, 0, nullptr); });
  notes("plan", [&] { return lathe::planJson(nullptr, 3); });
  notes("plan", [&] { return lathe::planJson("abc", 3); });
  notes("evaluate", [&] { return lathe::evaluate(nullptr, nullptr, 0); });
  notes("evaluate", [&] { return lathe::evaluate(kDigits.c_str(), nullptr, 3); });
  notes("compare", [&] { return lathe::compareJson(*engine, kDigits.c_str(), nullptr, 3, nullptr); });
  lathe::setInspectionOnly(*runtime, true);
  const auto inspected = load(*plan);
  refuses("context", [&] { return inspected->createExecutionContext(); });
}

TEST_F(MisuseTest, Refitters) {
  const auto engine = load(*build());
  const std::unique_ptr<IRefitter> refitter(createInferRefitter(*engine, logger));
  ASSERT_NE(refitter, nullptr);
  answers("weights",
          [&] { EXPECT_EQ(refitter->getAllWeights(0, nullptr) + refitter->getMissing(0, nullptr, nullptr), 0); });
  refuses("refit", [&] { return refitter->refitCudaEngine(); });
  refuses("refit", [&] { return refitter->refitCudaEngineAsync(nullptr); });
  refuses("threads", [&] { return refitter->setMaxThreads(0); });
  for (const char* name : {static_cast<const char*>(nullptr), "nobody"}) {
    refuses("weights", [&] { return refitter->setNamedWeights(name, Weights{}); });
    refuses("weights", [&] { return refitter->setWeights(name, WeightsRole::kKERNEL, Weights{}); });
    refuses("weights", [&] { return refitter->unsetNamedWeights(name); });
    refuses("prototype", [&] { return refitter->getWeightsPrototype(name).count; });
    refuses("location", [&] { return refitter->getWeightsLocation(name); });
    refuses("values", [&] { return refitter->getNamedWeights(name).values; });
  }
  const std::unique_ptr<nvonnxparser::IParserRefitter> models(nvonnxparser::createParserRefitter(*refitter, logger));
  ASSERT_NE(models, nullptr);
  refuses("model", [&] { return models->refitFromFile(kDigits.c_str()); });
  refuses("model", [&] { return models->refitFromBytes(nullptr, 0); });
  refuses("model", [&] { return models->loadModelProto(nullptr, 0); });
  refuses("initializer", [&] { return models->loadInitializer(nullptr, nullptr, 0); });
  refuses("model", [&] { return models->refitModelProto(); });
  ASSERT_EQ(models->getNbErrors(), 5);
  EXPECT_EQ(models->getError(4)->code(), nvonnxparser::ErrorCode::kREFIT_FAILED);
  EXPECT_EQ(models->getError(5), nullptr);
  models->clearErrors();
  EXPECT_EQ(models->getNbErrors(), 0);
  refuses("null refitter",
          [&] { return createNvOnnxParserRefitter_INTERNAL(nullptr, &logger, NV_ONNX_PARSER_VERSION); });
  refuses("version", [&] { return createNvOnnxParserRefitter_INTERNAL(refitter.get(), &logger, 3); });
}

TEST_F(MisuseTest, Context) {
  const auto engine = load(*build());
  const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  float data[24] = {};
  for (const char* name : {static_cast<const char*>(nullptr), "nobody"}) {
    refuses("set shape", [&] { return context->setInputShape(name, Dims2(1, 3)); });
    refuses("shape", [&] { return context->getTensorShape(name); });
    refuses("strides", [&] { return context->getTensorStrides(name); });
    refuses("set address", [&] { return context->setTensorAddress(name, data); });
    refuses("set input", [&] { return context->setInputTensorAddress(name, data); });
    refuses("set output", [&] { return context->setOutputTensorAddress(name, data); });
    refuses("address", [&] { return context->getTensorAddress(name); });
    refuses("output address", [&] { return context->getOutputTensorAddress(name); });
    refuses("set allocator", [&] { return context->setOutputAllocator(name, nullptr); });
    refuses("allocator", [&] { return context->getOutputAllocator(name); });
    refuses("size", [&] { return context->getMaxOutputSize(name); });
    refuses("set debug", [&] { return context->setTensorDebugState(name, true); });
    refuses("debug", [&] { return context->getDebugState(name); });
  }
  refuses("an output's shape", [&] { return context->setInputShape("y", Dims2(1, 2)); });
  refuses("rank", [&] { return context->setInputShape("x", Dims3(1, 3, 1)); });
  refuses("dims", [&] { return context->setInputShape("x", bad_dims()); });
  refuses("range", [&] { return context->setInputShape("x", Dims2(9, 3)); });
  refuses("profile", [&] { return context->setOptimizationProfileAsync(-1, nullptr); });
  refuses("profile", [&] { return context->setOptimizationProfileAsync(1, nullptr); });
  refuses("names", [&] {
    const char** none = nullptr;
    return context->inferShapes(2, none);
  });
  refuses("names", [&] {
    const char* name;
    return context->inferShapes(-1, &name);
  });
  refuses("name", [&] { context->setName(nullptr); });
  refuses("no shape", [&] { return context->updateDeviceMemorySizeForShapes(); });
  refuses("no shape", [&] { return context->enqueueV3(nullptr); });
  EXPECT_TRUE(context->setInputShape("x", Dims2(1, 3)));
  refuses("no address", [&] { return context->enqueueV3(nullptr); });
  EXPECT_TRUE(context->setInputTensorAddress("x", data));
  refuses("no output", [&] { return context->enqueueV3(nullptr); });
  refuses("bindings", [&] { return context->executeV2(nullptr); });
  refuses("own memory", [&] { context->setDeviceMemoryV2(data, 64); });
  refuses("no times", [&] { return context->reportToProfiler(); });
  refuses("verbosity", [&] { return context->setNvtxVerbosity(ProfilingVerbosity::kDETAILED); });
  refuses("verbosity", [&] { return context->setNvtxVerbosity(no_such<ProfilingVerbosity>()); });
  refuses("debug", [&] { return context->setUnfusedTensorsDebugState(true); });
  refuses("communicator", [&] { return context->setCommunicator(data); });
}

// S119, S133.
TEST_F(MisuseTest, ContextMemory) {
  if (on_gpu()) GTEST_SKIP() << "its one kernel needs no memory; Profiles.UsersMemoryMustBeEnoughForTheProfile has two";
  const auto engine = load(*build());
  const int64_t bytes = engine->getDeviceMemorySizeV2();
  EXPECT_EQ(engine->getDeviceMemorySizeForProfileV2(0), bytes);
  ASSERT_GT(bytes, 0);
  const auto strategy = ExecutionContextAllocationStrategy::kUSER_MANAGED;
  const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext(strategy));
  const float x[24] = {1, 1, 1};
  float y[16] = {};
  ASSERT_TRUE(context->setInputShape("x", Dims2(8, 3)));
  ASSERT_TRUE(context->setInputTensorAddress("x", x));
  ASSERT_TRUE(context->setOutputTensorAddress("y", y));
  const auto size = static_cast<size_t>(bytes);
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(256, (size / 256 + 1) * 256), &std::free);
  char* inside = static_cast<char*>(memory.get());

  refuses("never given", [&] { return context->enqueueV3(nullptr); });
  answers("taken away", [&] { context->setDeviceMemoryV2(nullptr, 0); });
  refuses("none", [&] { return context->enqueueV3(nullptr); });
  refuses("null", [&] { context->setDeviceMemoryV2(nullptr, bytes); });
  refuses("none", [&] { return context->enqueueV3(nullptr); });
  refuses("negative", [&] { context->setDeviceMemoryV2(inside, -1); });
  refuses("misaligned", [&] { context->setDeviceMemoryV2(inside + 8, bytes); });
  answers("too small", [&] { context->setDeviceMemoryV2(inside, bytes - 1); });
  refuses("too small", [&] { return context->enqueueV3(nullptr); });
  answers("enough", [&] { context->setDeviceMemoryV2(inside, bytes); });
  EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.last();
  EXPECT_EQ(y[0], 2);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  answers("taken away", [&] { context->setDeviceMemory(nullptr); });
  refuses("none", [&] { return context->enqueueV3(nullptr); });
  answers("enough", [&] { context->setDeviceMemory(inside); });
#pragma GCC diagnostic pop
  EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.last();
}

TEST_F(MisuseTest, ObjectsOutliveTheirParents) {
  const auto plan = build();
  auto engine = load(*plan);
  const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  const std::unique_ptr<IEngineInspector> inspector(engine->createEngineInspector());
  const std::unique_ptr<ITimingCache> cache(config->createTimingCache(nullptr, 0));
  builder.reset();
  runtime.reset();
  engine.reset();
  refuses("context", [&] { return context->enqueueV3(nullptr); });
  refuses("context's engine", [&] { return context->getEngine().getIOTensorName(99); });
  refuses("inspector", [&] { return inspector->getLayerInformation(99, LayerInformationFormat::kJSON); });
  refuses("network", [&] { return network->getLayer(99); });
  refuses("network's builder", [&] { return network->getBuilder().setMaxThreads(0); });
  refuses("configuration", [&] { return config->setMaxAuxStreams(-1); });
  refuses("cache", [&] { return cache->update({}, {}); });
}

TEST_F(MisuseTest, PluginRegistry) {
  IPluginRegistry& registry = builder->getPluginRegistry();
  refuses("null library", [&] { return registry.loadLibrary(nullptr); });
  refuses("no library", [&] { return registry.loadLibrary("/nowhere.so"); });
  refuses("no plugins", [&] { return registry.loadLibrary("libm.so.6"); });
  refuses("handle", [&] { registry.deregisterLibrary(&registry); });
  refuses("null name", [&] { return registry.getCreator(nullptr, "1", ""); });
  answers("no such plugin", [&] { EXPECT_EQ(registry.getCreator("nobody", "1", ""), nullptr); });
  refuses("resource", [&] { return registry.acquirePluginResource(nullptr, nullptr); });
  refuses("resource", [&] { return registry.acquirePluginResource("key", nullptr); });
  refuses("resource", [&] { return registry.releasePluginResource("key"); });
  refuses("runtime's", [&] { return runtime->getPluginRegistry().loadLibrary("/nowhere.so"); });
  EXPECT_EQ(getPluginRegistry()->loadLibrary("/nowhere.so"), nullptr);
  EXPECT_NE(std::string(lathe::lastError()).find("/nowhere.so"), std::string::npos) << lathe::lastError();
}

}  // namespace
}  // namespace nvinfer1
