// SPDX-License-Identifier: Apache-2.0
// Calls that no program should make, on every interface: none crashes, each that fails says so, and says so once.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "NvInferPlugin.h"
#include "NvOnnxParser.h"
#include "api/small_engine.h"
#include "source_dir.h"

namespace nvinfer1 {
namespace {

const std::string kDigits = lathe::source_path("/examples/digits/digits.onnx");

bool failed(bool result) { return !result; }
bool failed(const void* result) { return !result; }
bool failed(const char* result) { return !result || !*result; }
bool failed(int32_t result) { return result == -1; }
bool failed(int64_t result) { return result == -1; }
bool failed(size_t result) { return result == 0; }
bool failed(const Dims& result) { return result.nbDims == -1; }
template <class Enum>
requires std::is_enum_v<Enum>
bool failed(Enum) { return true; }  // has no value to spare

template <class Enum>
Enum no_such() {
  return static_cast<Enum>(EnumMax<Enum>() + 7);
}

class MisuseTest : public EngineTest {
 protected:
  // `call` fails with one report.
  template <class Call>
  void refuses(const char* name, Call&& call) {
    const size_t before = logger.text.size();
    if constexpr (std::is_void_v<decltype(call())>)
      call();
    else
      EXPECT_TRUE(failed(call())) << name;
    EXPECT_EQ(logger.text.size(), before + 1) << name << ": " << logger.last();
    if (logger.text.size() > before) {
      EXPECT_NE(logger.last().find("LATHE-"), std::string::npos) << logger.last();
    }
  }
  // Functions of lathe.h that know no logger leave their report in lastError().
  template <class Call>
  void notes(const char* name, Call&& call) {
    const size_t before = logger.text.size();
    forget_last_error();
    EXPECT_TRUE(failed(call())) << name;
    EXPECT_NE(std::string(lathe::lastError()).find("LATHE-"), std::string::npos) << name;
    EXPECT_EQ(std::string(lathe::lastError()).find("LATHE-9999"), std::string::npos) << name << lathe::lastError();
    EXPECT_EQ(logger.text.size(), before) << name;
  }
  // A question that has an answer, even if it is "none".
  template <class Call>
  void answers(const char* name, Call&& call) {
    const size_t before = logger.text.size();
    call();
    EXPECT_EQ(logger.text.size(), before) << name << ": " << logger.last();
  }
  static void forget_last_error() { lathe::supportJson(nullptr); }
  Dims bad_dims() const {
    Dims dims{};
    dims.nbDims = 99;
    return dims;
  }
};

TEST_F(MisuseTest, Factories) {
  EXPECT_EQ(createInferBuilder_INTERNAL(nullptr, NV_TENSORRT_VERSION), nullptr);
  EXPECT_EQ(createInferRuntime_INTERNAL(nullptr, NV_TENSORRT_VERSION), nullptr);
  refuses("another generation", [&] { return createInferBuilder_INTERNAL(&logger, 30000); });
  refuses("null network", [&] { return createNvOnnxParser_INTERNAL(nullptr, &logger, NV_ONNX_PARSER_VERSION); });
  refuses("parser version", [&] { return createNvOnnxParser_INTERNAL(network.get(), &logger, -3); });
  refuses("null engine", [&] { return createInferRefitter_INTERNAL(nullptr, &logger, NV_TENSORRT_VERSION); });
}

TEST_F(MisuseTest, BuilderAndConfiguration) {
  refuses("threads", [&] { return builder->setMaxThreads(0); });
  refuses("avg timing", [&] { config->setAvgTimingIterations(0); });
  refuses("level", [&] { config->setBuilderOptimizationLevel(9); });
  refuses("null profile", [&] { return config->addOptimizationProfile(nullptr); });
  refuses("tactic sources", [&] { return config->setTacticSources(~TacticSources{0}); });
  refuses("timing cache", [&] { return config->createTimingCache(nullptr, 7); });
  refuses("timing cache", [&] { return config->createTimingCache("nonsense", 8); });
  refuses("pool", [&] { config->setMemoryPoolLimit(no_such<MemoryPoolType>(), 1); });
  refuses("pool", [&] { return config->getMemoryPoolLimit(no_such<MemoryPoolType>()); });
  refuses("plugins", [&] { config->setPluginsToSerialize(nullptr, 2); });
  const char* const none[] = {nullptr};
  refuses("plugins", [&] { config->setPluginsToSerialize(none, 1); });
  refuses("plugin", [&] { return config->getPluginToSerialize(-1); });
  refuses("plugin", [&] { return config->getPluginToSerialize(0); });
  refuses("aux streams", [&] { return config->setMaxAuxStreams(-1); });
  refuses("L2 limit", [&] { return config->setL2LimitForTiling(-1); });
  refuses("remote tuning", [&] { return config->setRemoteAutoTuningConfig(nullptr); });
  refuses("build route", [&] { return config->setBuildRoute(nullptr); });
  refuses("build route", [&] { return config->setBuildRoute("[1]"); });
  const std::unique_ptr<INetworkDefinition> empty(builder->createNetworkV2(0));
  refuses("no outputs", [&] { return builder->buildSerializedNetwork(*empty, *config); });
  refuses("no outputs", [&] { return builder->buildEngineWithConfig(*empty, *config); });
  const std::unique_ptr<ITimingCache> cache(config->createTimingCache(nullptr, 0));
  refuses("cache keys", [&] { return cache->queryKeys(nullptr, 3); });
  refuses("cache update", [&] { return cache->update({}, {}); });
  notes("target", [&] { return lathe::setTarget(*config, nullptr); });
  notes("target", [&] { return lathe::setTarget(*config, "cpu-z80"); });
  notes("threads", [&] { return lathe::setCpuThreads(*config, -1); });
  notes("precision", [&] { return lathe::setPrecision(*config, DataType::kBOOL); });
  notes("constraints", [&] { return lathe::setPrecisionConstraints(*config, lathe::PrecisionConstraints{9}); });
  notes("layer", [&] { return lathe::setLayerPrecision(*config, nullptr, DataType::kHALF); });
  notes("layer", [&] { return lathe::setLayerPrecision(*config, "a*b*", DataType::kHALF); });
  notes("output", [&] { return lathe::setLayerOutputType(*config, "a", -1, DataType::kHALF); });
  notes("report", [&] { return lathe::buildReportJson(*builder); });
}

TEST_F(MisuseTest, Profile) {
  IOptimizationProfile* profile = builder->createOptimizationProfile();
  const auto min = OptProfileSelector::kMIN;
  const int64_t value = 1;
  refuses("null name", [&] { return profile->setDimensions(nullptr, min, Dims2(1, 3)); });
  refuses("selector", [&] { return profile->setDimensions("x", no_such<OptProfileSelector>(), Dims2(1, 3)); });
  refuses("dims", [&] { return profile->setDimensions("x", min, bad_dims()); });
  refuses("negative", [&] { return profile->setDimensions("x", min, Dims2(-1, 3)); });
  refuses("values", [&] { return profile->setShapeValuesV2("x", min, nullptr, 1); });
  refuses("count", [&] { return profile->setShapeValuesV2("x", min, &value, -1); });
  refuses("null name", [&] { return profile->setShapeValuesV2(nullptr, min, &value, 1); });
  refuses("null name", [&] { return profile->getDimensions(nullptr, min); });
  refuses("selector", [&] { return profile->getDimensions("x", no_such<OptProfileSelector>()); });
  refuses("null name", [&] { return profile->getNbShapeValues(nullptr); });
  refuses("null name", [&] { return profile->getShapeValuesV2(nullptr, min); });
  refuses("target", [&] { return profile->setExtraMemoryTarget(NAN); });
  answers("nothing set", [&] { EXPECT_EQ(profile->getDimensions("x", min).nbDims, -1); });
  profile->setDimensions("x", min, Dims2(1, 3));
  refuses("incomplete", [&] { return config->addOptimizationProfile(profile); });
}

TEST_F(MisuseTest, Network) {
  const std::unique_ptr<INetworkDefinition> other(builder->createNetworkV2(0));
  ITensor* foreign = other->addInput("f", DataType::kFLOAT, Dims2(2, 3));
  ITensor* x = network->getInput(0);
  ITensor* const nothing[] = {nullptr};
  const Weights lost{DataType::kFLOAT, nullptr, 6};
  refuses("layer", [&] { return network->getLayer(-1); });
  refuses("layer", [&] { return network->getLayer(99); });
  refuses("input", [&] { return network->getInput(1); });
  refuses("output", [&] { return network->getOutput(-2); });
  refuses("name", [&] { network->setName(nullptr); });
  refuses("input name", [&] { return network->addInput(nullptr, DataType::kFLOAT, Dims2(1, 1)); });
  refuses("input twice", [&] { return network->addInput("x", DataType::kFLOAT, Dims2(1, 1)); });
  refuses("input type", [&] { return network->addInput("t", no_such<DataType>(), Dims2(1, 1)); });
  refuses("input dims", [&] { return network->addInput("d", DataType::kFLOAT, bad_dims()); });
  refuses("foreign", [&] { return network->addIdentity(*foreign); });
  refuses("foreign", [&] { return network->addElementWise(*x, *foreign, ElementWiseOperation::kSUM); });
  refuses("foreign", [&] { network->markOutput(*foreign); });
  refuses("foreign", [&] { network->unmarkOutput(*foreign); });
  refuses("foreign", [&] { return network->markOutputForShapes(*foreign); });
  refuses("foreign", [&] { network->removeTensor(*foreign); });
  refuses("foreign", [&] { return network->markDebug(*foreign); });
  refuses("foreign", [&] { return network->unmarkDebug(*foreign); });
  refuses("foreign", [&] { return network->isDebugTensor(*foreign); });
  refuses("input as output", [&] { network->markOutput(*x); });
  refuses("in use", [&] { network->removeTensor(*x); });
  refuses("activation", [&] { return network->addActivation(*x, no_such<ActivationType>()); });
  refuses("unary", [&] { return network->addUnary(*x, no_such<UnaryOperation>()); });
  refuses("elementwise", [&] { return network->addElementWise(*x, *x, no_such<ElementWiseOperation>()); });
  refuses("reduce", [&] { return network->addReduce(*x, no_such<ReduceOperation>(), 1, false); });
  refuses("reduce axes", [&] { return network->addReduce(*x, ReduceOperation::kSUM, 1u << 7, false); });
  refuses("concatenation", [&] { return network->addConcatenation(nullptr, 2); });
  refuses("concatenation", [&] { return network->addConcatenation(nothing, 1); });
  refuses("concatenation", [&] { return network->addConcatenation(nothing, -1); });
  refuses("einsum", [&] { return network->addEinsum(&x, 1, nullptr); });
  refuses("einsum", [&] { return network->addEinsum(&x, 1, "nonsense"); });
  refuses("constant", [&] { return network->addConstant(Dims2(2, 3), lost); });
  refuses("constant", [&] { return network->addConstant(bad_dims(), lost); });
  refuses("gather", [&] { return network->addGather(*x, *x, 9); });
  refuses("convolution", [&] { return network->addConvolutionNd(*x, -4, Dims2(3, 3), lost, lost); });
  refuses("pooling", [&] { return network->addPoolingNd(*x, no_such<PoolingType>(), Dims2(2, 2)); });
  refuses("scale", [&] { return network->addScale(*x, no_such<ScaleMode>(), lost, lost, lost); });
  refuses("slice", [&] { return network->addSlice(*x, Dims{}, Dims2(1, 1), Dims2(1, 1)); });
  refuses("top k", [&] { return network->addTopK(*x, TopKOperation::kMAX, -1, 1, DataType::kINT32); });
  refuses("cast", [&] { return network->addCast(*x, no_such<DataType>()); });
  refuses("fill", [&] { return network->addFill(bad_dims(), FillOperation::kLINSPACE, DataType::kFLOAT); });
  refuses("loop", [&] { return network->addLoop(); });
  refuses("conditional", [&] { return network->addIfConditional(); });
  refuses("plugin", [&] { return network->addPluginV3(nullptr, 0, nullptr, 0, reinterpret_cast<IPluginV3&>(*x)); });
  refuses("weights name", [&] { return network->setWeightsName(lost, nullptr); });
  refuses("refittable", [&] { return network->markWeightsRefittable("nobody"); });
  refuses("refittable", [&] { return network->unmarkWeightsRefittable("nobody"); });
  refuses("refittable", [&] { return network->areWeightsMarkedRefittable(nullptr); });
  EXPECT_NE(build(), nullptr);  // none of it has left a trace
}

TEST_F(MisuseTest, LayersAndTensors) {
  const std::unique_ptr<INetworkDefinition> other(builder->createNetworkV2(0));
  ITensor* foreign = other->addInput("f", DataType::kFLOAT, Dims2(2, 3));
  ILayer* layer = network->getLayer(network->getNbLayers() - 1);
  ITensor* x = network->getInput(0);
  refuses("input", [&] { return layer->getInput(-1); });
  refuses("input", [&] { return layer->getInput(5); });
  refuses("output", [&] { return layer->getOutput(1); });
  refuses("output type", [&] { return layer->getOutputType(-7); });
  refuses("set input", [&] { layer->setInput(9, *x); });
  refuses("foreign", [&] { layer->setInput(0, *foreign); });
  refuses("name", [&] { layer->setName(nullptr); });
  refuses("metadata", [&] { layer->setMetadata(nullptr); });
  refuses("ranks", [&] { return layer->setNbRanks(0); });
  refuses("tensor name", [&] { x->setName(nullptr); });
  refuses("dims", [&] { x->setDimensions(bad_dims()); });
  refuses("computed dims", [&] { layer->getOutput(0)->setDimensions(Dims2(1, 1)); });
  refuses("dimension name", [&] { x->setDimensionName(2, "n"); });
  refuses("dimension name", [&] { return x->getDimensionName(-1); });
  refuses("dimension name", [&] { return x->getDimensionName(8); });
  auto* product = network->addMatrixMultiply(*x, MatrixOperation::kNONE, *x, MatrixOperation::kTRANSPOSE);
  refuses("product input", [&] { product->setOperation(2, MatrixOperation::kNONE); });
  auto* positions = network->addNonZero(*x, DataType::kINT64);
  refuses("indices", [&] { return positions->setIndicesType(DataType::kFLOAT); });
  auto* resize = network->addResize(*x);
  refuses("scales", [&] { resize->setScales(nullptr, 2); });
  auto* einsum = network->addEinsum(&x, 1, "ij->ji");
  refuses("equation", [&] { return einsum->setEquation("?"); });
  // What a setter accepts late is told when somebody looks, and at every look.
  static_cast<IActivationLayer*>(layer)->setActivationType(no_such<ActivationType>());
  refuses("look", [&] { return layer->getOutput(0)->getDimensions(); });
  refuses("build", [&] { return builder->buildSerializedNetwork(*network, *config); });
}

TEST_F(MisuseTest, Parser) {
  const std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
  int64_t count = 7;
  refuses("null model", [&] { return parser->parse(nullptr, 9); });
  refuses("nonsense", [&] { return parser->parse("nonsense", 8); });
  refuses("null path", [&] { return parser->parseFromFile(nullptr, 0); });
  refuses("no file", [&] { return parser->parseFromFile("/nowhere.onnx", 0); });
  refuses("network in use", [&] { return parser->parseFromFile(kDigits.c_str(), 0); });
  refuses("null operator", [&] { return parser->supportsOperator(nullptr); });
  refuses("null model", [&] { return parser->supportsModelV2(nullptr, 0); });
  refuses("subgraph", [&] { return parser->isSubgraphSupported(0); });
  refuses("subgraph", [&] { return parser->getSubgraphNodes(-1, count); });
  EXPECT_EQ(count, 0);
  refuses("initializer first", [&] { return parser->loadInitializer("w", nullptr, 0); });
  refuses("parse first", [&] { return parser->parseModelProto(); });
  refuses("null model", [&] { return parser->loadModelProto(nullptr, 0); });
  refuses("layer", [&] { return parser->getLayerOutputTensor(nullptr, 0); });
  refuses("layer", [&] { return parser->getLayerOutputTensor("nobody", 0); });
  refuses("layer output", [&] { return parser->getLayerOutputTensor(network->getLayer(0)->getName(), 4); });
  EXPECT_GT(parser->getNbErrors(), 3);
  refuses("error", [&] { return parser->getError(99); });
  refuses("error", [&] { return parser->getError(-1); });
}

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
  refuses("refitter", [&] { return createInferRefitter(*engine, logger); });
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

TEST_F(MisuseTest, ContextMemory) {
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
  answers("too small", [&] { context->setDeviceMemoryV2(inside, bytes / 2); });
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
