// SPDX-License-Identifier: Apache-2.0
// Settings that an input may give instead, layers that an importer made, and arguments that no layer takes.
#include "NvOnnxParser.h"
#include "api/layers_world.h"
#include "source_dir.h"

namespace nvinfer1::layers {
namespace {

// ---- Settings that an optional input may give instead: the last call wins ------------------------------------------

// A setter that gives again what the layer had at first, and whether its getter shows that nothing is set.
struct Replaceable {
  const char* name;
  std::function<ILayer*(Net&)> make;
  int32_t input;
  std::function<ITensor&(Net&)> tensor;
  std::function<void(Net&, ILayer&)> set;
  std::function<bool(const ILayer&)> is_unset;
};

template <class L>
Replaceable replaceable(const char* name, L* (*make)(Net&), int32_t input, ITensor& (*tensor)(Net&),
                        void (*set)(Net&, L&), bool (*is_unset)(const L&)) {
  return {name,
          make,
          input,
          tensor,
          [set](Net& n, ILayer& l) { set(n, static_cast<L&>(l)); },
          [is_unset](const ILayer& l) { return is_unset(static_cast<const L&>(l)); }};
}

#define UNSET(getter) [](const auto& l) { return l.getter == decltype(l.getter)(-1); }
#define NO_DIMS(getter) [](const auto& l) { return l.getter().nbDims == -1; }
#define NO_WEIGHTS(getter) [](const auto& l) { return l.getter().count == 0; }

std::vector<Replaceable> replaceables() {
  const auto shuffle = [](Net& n) {
    auto* l = n.network->addShuffle(n.input(Dims2(2, 3)));
    l->setReshapeDimensions(Dims2(3, 2));
    return l;
  };
  const auto slice = [](Net& n) {
    auto* l = n.network->addSlice(n.input(dims({6})), dims({0}), dims({2}), dims({1}));
    l->setAxes(dims({0}));
    return l;
  };
  const auto top = [](Net& n) {
    return n.network->addTopK(n.input(dims({4})), TopKOperation::kMAX, 1, 1, DataType::kINT32);
  };
  const auto fill = [](Net& n) { return n.network->addFill(dims({3}), FillOperation::kLINSPACE, DataType::kFLOAT); };
  const auto convolution = [](Net& n) {
    return n.network->addConvolutionNd(n.input(Dims4(1, 1, 1, 2)), 1, DimsHW(1, 1), n.weights({1}), n.weights({1}));
  };
  const auto deconvolution = [](Net& n) {
    return n.network->addDeconvolutionNd(n.input(Dims4(1, 1, 1, 2)), 1, DimsHW(1, 1), n.weights({1}), n.weights({1}));
  };
  const auto two = [](Net& n) -> ITensor& { return n.numbers({2}); };
  const auto one_real = [](Net& n) -> ITensor& { return n.constant(dims({}), {1}); };
  const auto one_bias = [](Net& n) -> ITensor& { return n.constant(dims({1}), {5}); };
  const auto kernel = [](Net& n) -> ITensor& { return n.constant(Dims4(1, 1, 1, 1), {5}); };
  return {
      replaceable<IShuffleLayer>(
          "reshape", shuffle, 1,
          [](Net& n) -> ITensor& {
            return n.numbers({1, 6});
          },
          CALL(setReshapeDimensions(Dims2(3, 2))), NO_DIMS(getReshapeDimensions)),
      replaceable<ISliceLayer>("start", slice, 1, two, CALL(setStart(dims({0}))), NO_DIMS(getStart)),
      replaceable<ISliceLayer>(
          "size", slice, 2, [](Net& n) -> ITensor& { return n.numbers({3}); }, CALL(setSize(dims({2}))),
          NO_DIMS(getSize)),
      replaceable<ISliceLayer>("stride", slice, 3, two, CALL(setStride(dims({1}))), NO_DIMS(getStride)),
      replaceable<ISliceLayer>("axes", slice, 5, two, CALL(setAxes(dims({0}))), NO_DIMS(getAxes)),
      replaceable<ITopKLayer>(
          "k", top, 1, [](Net& n) -> ITensor& { return n.shaped(dims({}), {2}); }, CALL(setK(1)), UNSET(getK())),
      replaceable<IFillLayer>("dimensions", fill, 0, two, CALL(setDimensions(dims({3}))), NO_DIMS(getDimensions)),
      replaceable<IFillLayer>("alpha", fill, 1, one_real, CALL(setAlpha(0)), UNSET(getAlpha())),
      replaceable<IFillLayer>(
          "beta", fill, 2, [](Net& n) -> ITensor& { return n.constant(dims({1}), {4}); }, CALL(setBeta(1)),
          UNSET(getBeta())),
      replaceable<IFillLayer>("integer alpha", fill, 1, one_real, CALL(setAlphaInt64(0)), UNSET(getAlphaInt64())),
      replaceable<IFillLayer>("integer beta", fill, 2, one_bias, CALL(setBetaInt64(1)), UNSET(getBetaInt64())),
      replaceable<IConvolutionLayer>("kernel", convolution, 1, kernel, CALL(setKernelWeights(n.weights({1}))),
                                     NO_WEIGHTS(getKernelWeights)),
      replaceable<IConvolutionLayer>("bias", convolution, 2, one_bias, CALL(setBiasWeights(n.weights({1}))),
                                     NO_WEIGHTS(getBiasWeights)),
      replaceable<IDeconvolutionLayer>("deconvolution's kernel", deconvolution, 1, kernel,
                                       CALL(setKernelWeights(n.weights({1}))), NO_WEIGHTS(getKernelWeights)),
      replaceable<IDeconvolutionLayer>("deconvolution's bias", deconvolution, 2, one_bias,
                                       CALL(setBiasWeights(n.weights({1}))), NO_WEIGHTS(getBiasWeights)),
  };
}

TEST(LayerInputs, TheLastOfInputAndSetterWins) {
  for (const Replaceable& r : replaceables()) {
    SCOPED_TRACE(r.name);
    Net n;
    ILayer* layer = r.make(n);
    ASSERT_NE(layer, nullptr) << n.log.text();
    const std::string first = n.result(*layer);
    ITensor& tensor = r.tensor(n);
    for (int time = 0; time < 2; ++time) {
      EXPECT_FALSE(r.is_unset(*layer));
      layer->setInput(r.input, tensor);
      EXPECT_TRUE(r.is_unset(*layer));
      EXPECT_EQ(layer->getInput(r.input), &tensor);
      EXPECT_NE(n.result(*layer), first);
      r.set(n, *layer);
      EXPECT_FALSE(r.is_unset(*layer));
      EXPECT_EQ(layer->getInput(r.input), nullptr);
      EXPECT_EQ(n.result(*layer), first);
    }
    EXPECT_TRUE(n.log.errors.empty()) << n.log.text();
    EXPECT_TRUE(n.builds()) << n.log.text();
  }
}

TEST(LayerInputs, ResizeTakesTheLastOfDimensionsAndScalesUntilInputOneIsThere) {
  Net n;
  auto* l = n.network->addResize(n.input(Dims2(1, 2)));
  const float scales[] = {1, 2}, others[] = {1, 3};
  l->setOutputDimensions(Dims2(2, 2));
  l->setScales(scales, 2);
  EXPECT_EQ(l->getOutputDimensions().nbDims, -1);
  EXPECT_EQ(n.result(*l), "f32[1, 4]: -2 -2 -1 -1");
  l->setOutputDimensions(Dims2(2, 2));
  EXPECT_EQ(l->getScales(0, nullptr), -1);
  EXPECT_EQ(n.result(*l), "f32[2, 2]: -2 -1 -2 -1");
  l->setScales(scales, 2);
  l->setInput(1, n.numbers({1, 3}));
  EXPECT_EQ(l->getScales(0, nullptr), -1);
  EXPECT_EQ(n.result(*l), "f32[1, 3]: -2 -2 -1");
  EXPECT_TRUE(n.log.errors.empty()) << n.log.text();
  l->setScales(others, 2);
  EXPECT_EQ(n.log.errors.size(), 1u) << n.log.text();
  l->setOutputDimensions(Dims2(2, 2));
  EXPECT_EQ(n.log.errors.size(), 2u) << n.log.text();
  EXPECT_EQ(n.result(*l), "f32[1, 3]: -2 -2 -1");
}

// ---- Slices of open sizes
// --------------------------------------------------------------------------------------------

// What is taken has the size that was asked for; where x is too short, its shape is refused.
TEST(StrictSlices, TakeWhatTheyAreAskedForOrRefuseTheShape) {
  Net n;
  ITensor& x = n.input(dims({-1}));
  auto* slice = n.network->addSlice(x, dims({1}), dims({2}), dims({1}));
  auto* flip = n.network->addSlice(x, dims({2}), dims({3}), dims({-1}));
  ASSERT_TRUE(slice && flip) << n.log.text();
  EXPECT_TRUE(same(slice->getOutput(0)->getDimensions(), dims({2})));
  EXPECT_TRUE(same(flip->getOutput(0)->getDimensions(), dims({3})));
  for (ILayer* layer : {static_cast<ILayer*>(slice), static_cast<ILayer*>(flip)})
    n.network->markOutput(*layer->getOutput(0));
  const std::unique_ptr<IBuilderConfig> config(n.builder->createBuilderConfig());
  lathe::setBuildBudget(*config, 0);
  IOptimizationProfile* profile = n.builder->createOptimizationProfile();
  profile->setDimensions("x0", OptProfileSelector::kMIN, dims({1}));
  profile->setDimensions("x0", OptProfileSelector::kOPT, dims({4}));
  profile->setDimensions("x0", OptProfileSelector::kMAX, dims({8}));
  config->addOptimizationProfile(profile);
  const std::unique_ptr<IHostMemory> plan(n.builder->buildSerializedNetwork(*n.network, *config));
  ASSERT_NE(plan, nullptr) << n.log.text();
  const std::unique_ptr<IRuntime> runtime(createInferRuntime(n.log));
  const std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
  const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  EXPECT_TRUE(context->setInputShape("x0", dims({3}))) << n.log.text();
  float x_values[8] = {0, 1, 2}, y[2] = {}, z[3] = {};
  context->setTensorAddress("x0", x_values);
  context->setTensorAddress(slice->getOutput(0)->getName(), y);
  context->setTensorAddress(flip->getOutput(0)->getName(), z);
  EXPECT_TRUE(context->enqueueV3(nullptr)) << n.log.text();
  EXPECT_EQ(y[1], 2);
  EXPECT_EQ(z[0], 2);
  EXPECT_TRUE(n.log.errors.empty()) << n.log.text();
  context->setInputShape("x0", dims({2}));
  EXPECT_FALSE(context->enqueueV3(nullptr));
  EXPECT_EQ(n.log.errors.size(), 1u) << n.log.text();
}

// ---- Layers that an importer made ----------------------------------------------------------------------------------

struct Imported : Net {
  Imported() {
    EXPECT_TRUE(parser->parseFromFile(lathe::source_path("/examples/digits/digits.onnx").c_str(), 0)) << log.text();
    network->getInput(0)->setDimensions(Dims4(1, 1, 8, 8));
    for (int32_t i = 0; !layer && i < network->getNbLayers(); ++i)
      if (network->getLayer(i)->getType() == LayerType::kCONVOLUTION)
        layer = static_cast<IConvolutionLayer*>(network->getLayer(i));
    layer->setName("the layer");
  }
  std::unique_ptr<nvonnxparser::IParser> parser{nvonnxparser::createParser(*network, log)};
  IConvolutionLayer* layer = nullptr;
};

TEST(ImportedConvolution, TakesAnotherKernel) {
  Imported n;
  const std::vector<float> zeros(16 * 25), threes(16, 3.0f);
  EXPECT_EQ(n.layer->getKernelWeights().count, 0);
  n.layer->setKernelSizeNd(DimsHW(5, 5));
  n.layer->setPaddingNd(DimsHW(2, 2));
  n.layer->setKernelWeights(Weights{DataType::kFLOAT, zeros.data(), 16 * 25});
  n.layer->setBiasWeights(Weights{DataType::kFLOAT, threes.data(), 16});
  EXPECT_EQ(n.layer->getKernelWeights().values, zeros.data());
  EXPECT_EQ(n.layer->getInput(1), nullptr);
  EXPECT_NE(n.result(*n.layer).find("; f32[1, 16, 8, 8]: 3 3 3 3"), std::string::npos) << n.result(*n.layer);
  EXPECT_TRUE(n.log.errors.empty()) << n.log.text();
  EXPECT_TRUE(n.builds()) << n.log.text();

  Imported other;
  other.layer->setNbOutputMaps(8);
  other.layer->setKernelWeights(Weights{DataType::kFLOAT, zeros.data(), 8 * 9});
  EXPECT_TRUE(same(other.layer->getOutput(0)->getDimensions(), Dims4(1, 8, 8, 8))) << other.log.text();
}

TEST(ImportedConvolution, RefusesWhatItsKernelDoesNotFit) {
  const std::function<void(IConvolutionLayer&)> calls[] = {
      [](auto& l) { l.setNbOutputMaps(8); },
      [](auto& l) { l.setKernelSizeNd(DimsHW(5, 5)); },
      [](auto& l) { l.setNbGroups(3); },
  };
  for (const auto& call : calls) {
    Imported n;
    EXPECT_TRUE(n.builds()) << n.log.text();
    call(*n.layer);
    EXPECT_FALSE(n.builds());
    ASSERT_EQ(n.log.errors.size(), 1u) << n.log.text();
    EXPECT_NE(n.log.text().find("'the layer'"), std::string::npos) << n.log.text();
  }
}

TEST(ImportedConstants, KeepTheirMemoryWhenTheirLayersChange) {
  Imported n;
  const std::string before = n.result(*n.layer);
  const auto& graph = static_cast<lathe::api::NetworkDefinition&>(*n.network).graph();
  const auto owned = [&] {
    size_t count = 0;
    for (const auto& node : graph.nodes())
      if (node->is(lathe::OpKind::constant)) count += node->attrs<lathe::ConstantAttrs>().value.owner() != nullptr;
    return count;
  };
  const size_t all = owned();
  EXPECT_GT(all, 10u);
  for (int32_t i = 0; i < n.network->getNbLayers(); ++i)
    n.network->getLayer(i)->setName(("renamed " + std::to_string(i)).c_str());
  EXPECT_EQ(n.result(*n.layer), before);
  EXPECT_EQ(owned(), all);
  EXPECT_TRUE(n.builds()) << n.log.text();
}

// ---- Tensors -------------------------------------------------------------------------------------------------------

TEST(TensorSetters, RefuseNonsense) {
  const std::function<void(ITensor&)> calls[] = {
      [](auto& x) { x.setName(nullptr); },
      [](auto& x) { x.setName(std::string(5000, 'x').c_str()); },
      [](auto& x) { x.setDimensions(kRank9); },
      [](auto& x) { x.setDimensions(Dims2(-2, 1)); },
      [](auto& x) { x.setLocation(no_such<TensorLocation>()); },
      [](auto& x) { x.setAllowedFormats(0); },
      [](auto& x) { x.setAllowedFormats(1u << 31); },
      [](auto& x) { x.setDimensionName(2, "n"); },
      [](auto& x) { x.setDimensionName(-1, "n"); },
      [](auto& x) { x.setDimensionName(0, std::string(5000, 'n').c_str()); },
  };
  size_t i = 0;
  for (const auto& call : calls) {
    Net n;
    ITensor& x = n.input(Dims2(1, 2));
    const ILayer& layer = *n.network->addIdentity(x);
    const std::string before = n.result(layer);
    call(x);
    EXPECT_EQ(n.log.errors.size(), 1u) << i << ": " << n.log.text();
    EXPECT_EQ(n.result(layer), before) << i;
    EXPECT_STREQ(x.getName(), "x0");
    ++i;
  }
}

TEST(TensorSetters, InputsAndOutputsOfOneNameDoNotBuild) {
  for (const bool output : {false, true}) {
    Net n;
    ITensor &a = n.input(Dims2(1, 2)), &b = n.input(Dims2(1, 2));
    const ILayer& sum = *n.network->addElementWise(a, b, ElementWiseOperation::kSUM);
    n.network->markOutput(*sum.getOutput(0));
    (output ? *sum.getOutput(0) : b).setName("x0");
    EXPECT_FALSE(n.builds()) << output;
    EXPECT_EQ(n.log.errors.size(), 1u) << n.log.text();
    EXPECT_NE(n.log.text().find("'x0'"), std::string::npos) << n.log.text();
  }
}

// ---- What no layer is made with ------------------------------------------------------------------------------------

TEST(LayerArguments, ThatDoNotExistGiveNullAndOneReport) {
  using N = INetworkDefinition;
  const Weights none{}, dangling{DataType::kFLOAT, nullptr, 4};
  const std::function<const void*(Net&, N&, ITensor&)> calls[] = {
      [](Net&, N& n, ITensor& x) { return n.addActivation(x, no_such<ActivationType>()); },
      [](Net&, N& n, ITensor& x) { return n.addUnary(x, no_such<UnaryOperation>()); },
      [](Net&, N& n, ITensor& x) { return n.addElementWise(x, x, no_such<ElementWiseOperation>()); },
      [](Net&, N& n, ITensor& x) { return n.addPoolingNd(x, no_such<PoolingType>(), DimsHW(1, 1)); },
      [](Net&, N& n, ITensor& x) { return n.addPoolingNd(x, PoolingType::kMAX, kRank9); },
      [=](Net&, N& n, ITensor& x) { return n.addScale(x, no_such<ScaleMode>(), none, none, none); },
      [=](Net&, N& n, ITensor& x) { return n.addScale(x, ScaleMode::kUNIFORM, dangling, none, none); },
      [](Net&, N& n, ITensor& x) { return n.addReduce(x, no_such<ReduceOperation>(), 1, true); },
      [](Net&, N& n, ITensor& x) { return n.addTopK(x, no_such<TopKOperation>(), 1, 1, DataType::kINT32); },
      [](Net& w, N& n, ITensor& x) { return n.addGatherV2(x, w.shaped(dims({}), {0}), no_such<GatherMode>()); },
      [](Net& w, N& n, ITensor& x) {
        return n.addScatter(x, w.shaped(Dims4(1, 1, 1, 1), {0}), w.constant(Dims4(1, 1, 1, 1), {0}),
                            no_such<ScatterMode>());
      },
      [](Net&, N& n, ITensor& x) {
        return n.addMatrixMultiply(x, MatrixOperation::kNONE, x, no_such<MatrixOperation>());
      },
      [](Net& w, N& n, ITensor& x) {
        return n.addCumulative(x, w.shaped(dims({}), {0}), no_such<CumulativeOperation>(), false, false);
      },
      [](Net&, N& n, ITensor&) { return n.addFill(dims({1}), no_such<FillOperation>(), DataType::kFLOAT); },
      [](Net&, N& n, ITensor&) { return n.addFill(kRank9, FillOperation::kLINSPACE, DataType::kFLOAT); },
      [](Net&, N& n, ITensor& x) { return n.addCast(x, no_such<DataType>()); },
      [](Net&, N& n, ITensor& x) { return n.addSlice(x, kRank9, kRank9, kRank9); },
      [](Net&, N& n, ITensor& x) { return n.addPaddingNd(x, kRank9, DimsHW(0, 0)); },
      [=](Net&, N& n, ITensor&) { return n.addConstant(dims({4}), dangling); },
      [=](Net&, N& n, ITensor& x) { return n.addConvolutionNd(x, 4, DimsHW(1, 1), dangling, none); },
  };
  size_t i = 0;
  for (const auto& call : calls) {
    Net n;
    EXPECT_EQ(call(n, *n.network, n.input(Dims4(1, 1, 1, 1))), nullptr) << i;
    EXPECT_EQ(n.log.errors.size(), 1u) << i << ": " << n.log.text();
    EXPECT_NE(n.log.text().find("LATHE-"), std::string::npos) << n.log.text();
    ++i;
  }
}

// What depends on the input's shape, or can be set after the layer is added, is judged when somebody looks.
TEST(LayerArguments, ThatDoNotFitAreReportedWhenTheShapeIsAskedFor) {
  using N = INetworkDefinition;
  const std::function<ILayer*(N&, ITensor&)> calls[] = {
      [](N& n, ITensor& x) { return n.addTopK(x, TopKOperation::kMAX, 1, 1, DataType::kFLOAT); },
      [](N& n, ITensor& x) { return n.addTopK(x, TopKOperation::kMAX, -1, 1, DataType::kINT32); },
      [](N& n, ITensor& x) { return n.addNonZero(x, DataType::kFLOAT); },
      [](N& n, ITensor& x) { return n.addSlice(x, Dims4(0, 0, 0, 0), Dims4(1, 1, 1, 3), Dims4(1, 1, 1, 1)); },
      [](N& n, ITensor& x) { return n.addSlice(x, Dims{}, Dims2(1, 1), Dims2(1, 1)); },
      [](N& n, ITensor& x) { return n.addReduce(x, ReduceOperation::kSUM, 1u << 7, false); },
      [](N& n, ITensor& x) { return n.addGather(x, x, 9); },
  };
  size_t i = 0;
  for (const auto& call : calls) {
    Net n;
    ILayer* layer = call(*n.network, n.input(Dims4(1, 1, 1, 1)));
    ASSERT_NE(layer, nullptr) << i << n.log.text();
    layer->setName("culprit");
    EXPECT_TRUE(n.log.errors.empty()) << i << ": " << n.log.text();
    EXPECT_EQ(layer->getOutput(0)->getDimensions().nbDims, -1) << i;
    EXPECT_EQ(n.log.errors.size(), 1u) << i << ": " << n.log.text();
    EXPECT_NE(n.log.text().find("layer 'culprit'"), std::string::npos) << n.log.text();
    ++i;
  }
}

}  // namespace
}  // namespace nvinfer1::layers
