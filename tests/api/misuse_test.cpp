// SPDX-License-Identifier: Apache-2.0
// Calls that no program should make of builders, networks and the parser.
#include <cmath>
#include <cstdlib>

#include "api/misuse_fixture.h"

namespace nvinfer1 {
namespace {

TEST_F(MisuseTest, Factories) {
  EXPECT_EQ(createInferBuilder_INTERNAL(nullptr, NV_TENSORRT_VERSION), nullptr);
  EXPECT_EQ(createInferRuntime_INTERNAL(nullptr, NV_TENSORRT_VERSION), nullptr);
  notes("a later generation", [&] { return createInferBuilder_INTERNAL(&logger, 130000); });
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
  notes("variants", [&] { return lathe::setVariantWeights(*config, lathe::VariantWeights{2}); });
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
  refuses("concatenation", [&] { return network->addConcatenation(nullptr, 2); });
  refuses("concatenation", [&] { return network->addConcatenation(nothing, 1); });
  refuses("concatenation", [&] { return network->addConcatenation(nothing, -1); });
  refuses("einsum", [&] { return network->addEinsum(&x, 1, nullptr); });
  refuses("constant", [&] { return network->addConstant(Dims2(2, 3), lost); });
  refuses("constant", [&] { return network->addConstant(bad_dims(), lost); });
  refuses("convolution", [&] { return network->addConvolutionNd(*x, -4, Dims2(3, 3), lost, lost); });
  refuses("pooling", [&] { return network->addPoolingNd(*x, no_such<PoolingType>(), Dims2(2, 2)); });
  refuses("scale", [&] { return network->addScale(*x, no_such<ScaleMode>(), lost, lost, lost); });
  refuses("cast", [&] { return network->addCast(*x, no_such<DataType>()); });
  refuses("fill", [&] { return network->addFill(bad_dims(), FillOperation::kLINSPACE, DataType::kFLOAT); });
  refuses("loop", [&] { return network->addLoop()->addRecurrence(*foreign); });
  refuses("conditional", [&] { return network->addIfConditional()->setCondition(*foreign); });
  refuses("there are 1 inputs",
          [&] { return network->addPluginV3(nullptr, 1, nullptr, 0, reinterpret_cast<IPluginV3&>(*x)); });
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
  auto* sum = network->addReduce(*x, ReduceOperation::kSUM, 1, true);
  sum->setReduceAxes(1u << 7);
  refuses("look", [&] { return sum->getOutput(0)->getDimensions(); });
  refuses("build", [&] { return builder->buildSerializedNetwork(*network, *config); });
}

// S32.
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

}  // namespace
}  // namespace nvinfer1
