// SPDX-License-Identifier: Apache-2.0
// Networks built through the public interface compute what they say, and report what they cannot do.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "api/network/network.h"
#include "ir/interpret.h"

namespace nvinfer1 {
namespace {

struct Messages : ILogger {
  void log(Severity severity, const char* message) noexcept override {
    if (severity <= Severity::kERROR) errors.emplace_back(message);
  }
  std::vector<std::string> errors;
};

struct Recorder : IErrorRecorder {
  int32_t getNbErrors() const noexcept override { return static_cast<int32_t>(codes.size()); }
  ErrorCode getErrorCode(int32_t i) const noexcept override { return codes[static_cast<size_t>(i)]; }
  ErrorDesc getErrorDesc(int32_t) const noexcept override { return ""; }
  bool hasOverflowed() const noexcept override { return false; }
  void clear() noexcept override { codes.clear(); }
  bool reportError(ErrorCode code, ErrorDesc) noexcept override {
    codes.push_back(code);
    return false;
  }
  RefCount incRefCount() noexcept override { return ++references; }
  RefCount decRefCount() noexcept override { return --references; }
  std::vector<ErrorCode> codes;
  int references = 0;
};

class Network : public testing::Test {
 protected:
  Messages logger;
  std::unique_ptr<IBuilder> builder{createInferBuilder(logger)};
  std::unique_ptr<INetworkDefinition> network{builder->createNetworkV2(0)};

  ITensor& input(const char* name, const Dims& dims, DataType type = DataType::kFLOAT) {
    return *network->addInput(name, type, dims);
  }

  // All outputs for float inputs, by the plain evaluation.
  std::vector<std::vector<double>> run(const std::vector<std::vector<float>>& inputs) {
    auto& definition = static_cast<lathe::api::NetworkDefinition&>(*network);
    const auto resolved = definition.resolve_all();
    EXPECT_TRUE(resolved.has_value()) << (resolved ? "" : resolved.error().to_string());
    std::vector<lathe::Tensor> tensors;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto dims = lathe::as_constant(definition.graph().inputs()[i]->shape());
      tensors.push_back(lathe::Tensor::from<float>(*dims, inputs[i]));
    }
    const auto outputs = lathe::ir::interpret(definition.graph(), tensors);
    EXPECT_TRUE(outputs.has_value()) << (outputs ? "" : outputs.error().to_string());
    std::vector<std::vector<double>> result;
    if (!outputs) return result;
    for (const lathe::Tensor& tensor : *outputs) {
      result.emplace_back();
      for (int64_t i = 0; i < tensor.volume(); ++i) result.back().push_back(tensor.at_double(i));
    }
    return result;
  }
};

std::vector<int64_t> dims_of(const ITensor& tensor) {
  const Dims dims = tensor.getDimensions();
  return {dims.d, dims.d + dims.nbDims};
}

using V = std::vector<double>;
using D = std::vector<int64_t>;

TEST_F(Network, ElementWiseThenActivation) {
  ITensor& a = input("a", Dims2(1, 3));
  ITensor& b = input("b", Dims2(1, 3));
  auto* sum = network->addElementWise(a, b, ElementWiseOperation::kSUM);
  auto* relu = network->addActivation(*sum->getOutput(0), ActivationType::kRELU);
  relu->getOutput(0)->setName("y");
  network->markOutput(*relu->getOutput(0));
  EXPECT_EQ(run({{1, -5, 2}, {1, 1, 1}}), (std::vector<V>{{2, 0, 3}}));
  EXPECT_STREQ(network->getOutput(0)->getName(), "y");
  EXPECT_EQ(network->getNbLayers(), 2);
  EXPECT_EQ(network->getLayer(1), static_cast<ILayer*>(relu));
  EXPECT_EQ(network->getLayer(2), nullptr);
  EXPECT_EQ(network->getLayer(0)->getType(), LayerType::kELEMENTWISE);
}

TEST_F(Network, SettersChangeTheNodesOfALayerThatIsRead) {
  ITensor& x = input("x", Dims2(2, 3));
  auto* shuffle = network->addShuffle(x);
  auto* negative = network->addUnary(*shuffle->getOutput(0), UnaryOperation::kNEG);
  network->markOutput(*negative->getOutput(0));
  EXPECT_EQ(dims_of(*negative->getOutput(0)), (D{2, 3}));
  shuffle->setFirstTranspose(Permutation{{1, 0}});
  shuffle->setReshapeDimensions(Dims3(1, 0, -1));
  EXPECT_EQ(dims_of(*negative->getOutput(0)), (D{1, 2, 3}));
  shuffle->setReshapeDimensions(Dims2(0, -1));
  EXPECT_EQ(dims_of(*negative->getOutput(0)), (D{3, 2}));
  EXPECT_EQ(run({{1, 2, 3, 4, 5, 6}}), (std::vector<V>{{-1, -4, -2, -5, -3, -6}}));
}

TEST_F(Network, InputsMadeLaterMayBecomeInputsOfEarlierLayers) {
  ITensor& x = input("x", Dims2(2, 3));
  auto* shuffle = network->addShuffle(x);
  auto* after = network->addUnary(*shuffle->getOutput(0), UnaryOperation::kABS);
  network->markOutput(*after->getOutput(0));
  const int32_t dims[] = {6};
  auto* shape = network->addConstant(Dims{1, {1}}, Weights{DataType::kINT32, dims, 1});
  shuffle->setInput(1, *shape->getOutput(0));
  EXPECT_EQ(dims_of(*after->getOutput(0)), (D{6}));
  EXPECT_EQ(shuffle->getReshapeDimensions().nbDims, -1);
  EXPECT_EQ(run({{-1, 2, -3, 4, -5, 6}}), (std::vector<V>{{1, 2, 3, 4, 5, 6}}));
  EXPECT_TRUE(logger.errors.empty()) << logger.errors[0];
}

TEST_F(Network, DynamicReshapeFollowsTheInput) {
  ITensor& x = input("x", Dims3(-1, 4, 6));
  auto* shape = network->addShape(x);
  const int64_t one[] = {1};
  auto* index = network->addConstant(Dims{1, {1}}, Weights{DataType::kINT64, one, 1});
  auto* size = network->addGather(*shape->getOutput(0), *index->getOutput(0), 0);
  const int64_t rest[] = {-1};
  auto* inferred = network->addConstant(Dims{1, {1}}, Weights{DataType::kINT64, rest, 1});
  ITensor* parts[] = {size->getOutput(0), inferred->getOutput(0)};
  auto* dims = network->addConcatenation(parts, 2);
  auto* shuffle = network->addShuffle(x);
  shuffle->setInput(1, *dims->getOutput(0));
  EXPECT_EQ(dims_of(*shuffle->getOutput(0)), (D{4, -1}));
  EXPECT_TRUE(dims->getOutput(0)->isShapeTensor());
  EXPECT_FALSE(x.isShapeTensor());
}

TEST_F(Network, ConvolutionWithWeights) {
  ITensor& x = input("x", Dims4(1, 1, 3, 3));
  const std::vector<float> kernel(4, 1.0f);
  const float bias[] = {0.5f};
  auto* layer = network->addConvolutionNd(x, 1, DimsHW(2, 2), Weights{DataType::kFLOAT, kernel.data(), 4},
                                          Weights{DataType::kFLOAT, bias, 1});
  ASSERT_NE(layer, nullptr);
  EXPECT_EQ(dims_of(*layer->getOutput(0)), (D{1, 1, 2, 2}));
  layer->setStrideNd(DimsHW(2, 2));
  layer->setPostPadding(DimsHW(1, 1));
  EXPECT_EQ(layer->getPaddingNd().nbDims, -1);
  EXPECT_EQ(layer->getDilationNd().d[0], 1);
  network->markOutput(*layer->getOutput(0));
  EXPECT_EQ(dims_of(*layer->getOutput(0)), (D{1, 1, 2, 2}));
}

TEST_F(Network, KernelAsAnInput) {
  ITensor& x = input("x", Dims4(1, 1, 3, 3));
  ITensor& w = input("w", Dims4(2, 1, 2, 2));
  auto* layer = network->addConvolutionNd(x, 2, DimsHW(2, 2), Weights{}, Weights{});
  ASSERT_NE(layer, nullptr);
  network->markOutput(*layer->getOutput(0));
  auto& definition = static_cast<lathe::api::NetworkDefinition&>(*network);
  EXPECT_FALSE(definition.resolve_all().has_value());  // no kernel so far
  layer->setInput(1, w);
  EXPECT_TRUE(definition.resolve_all().has_value());
  EXPECT_EQ(definition.graph().inputs().size(), 2u);
}

TEST_F(Network, ScaleSoftMaxReduceTopK) {
  ITensor& x = input("x", Dims4(1, 2, 1, 2));
  const float scale[] = {2, 3}, shift[] = {1, 0};
  auto* scaled = network->addScale(x, ScaleMode::kCHANNEL, Weights{DataType::kFLOAT, shift, 2},
                                   Weights{DataType::kFLOAT, scale, 2}, Weights{});
  network->markOutput(*scaled->getOutput(0));
  auto* sum = network->addReduce(x, ReduceOperation::kSUM, 0b1110, false);
  network->markOutput(*sum->getOutput(0));
  auto* top = network->addTopK(x, TopKOperation::kMAX, 1, 1u << 3, DataType::kINT32);
  network->markOutput(*top->getOutput(1));
  EXPECT_EQ(top->getOutput(1)->getType(), DataType::kINT32);
  const auto outputs = run({{1, 2, 4, 3}});
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(outputs[0], (V{3, 5, 12, 9}));
  EXPECT_EQ(outputs[1], (V{10}));
  EXPECT_EQ(outputs[2], (V{1, 0}));
}

TEST_F(Network, QuantizesAndDequantizes) {
  ITensor& x = input("x", Dims2(2, 4));
  const float step = 0.5f, steps[] = {0.5f, 2.0f}, blocks[] = {1, 2, 4, 8};
  ITensor& scale = *network->addConstant(Dims{0, {}}, Weights{DataType::kFLOAT, &step, 1})->getOutput(0);
  ITensor& rows = *network->addConstant(Dims{1, {2}}, Weights{DataType::kFLOAT, steps, 2})->getOutput(0);
  ITensor& block = *network->addConstant(Dims2(2, 2), Weights{DataType::kFLOAT, blocks, 4})->getOutput(0);
  IQuantizeLayer* q = network->addQuantize(x, scale, DataType::kINT8);
  ASSERT_NE(q, nullptr) << logger.errors[0];
  EXPECT_EQ(q->getType(), LayerType::kQUANTIZE);
  EXPECT_EQ(q->getOutput(0)->getType(), DataType::kINT8);
  IDequantizeLayer* y = network->addDequantize(*q->getOutput(0), scale, DataType::kFLOAT);
  ASSERT_NE(y, nullptr) << logger.errors[0];
  EXPECT_EQ(y->getType(), LayerType::kDEQUANTIZE);
  network->markOutput(*y->getOutput(0));
  IDequantizeLayer* by_block = network->addDequantize(*q->getOutput(0), block, DataType::kFLOAT);
  ASSERT_NE(by_block, nullptr) << logger.errors[0];
  EXPECT_TRUE(by_block->setBlockShape(Dims2(1, 2)));
  network->markOutput(*by_block->getOutput(0));
  IDequantizeLayer* by_row = network->addDequantize(*q->getOutput(0), rows, DataType::kFLOAT);
  ASSERT_NE(by_row, nullptr) << logger.errors[0];
  auto& definition = static_cast<lathe::api::NetworkDefinition&>(*network);
  EXPECT_FALSE(definition.resolve_all());  // along which axis?
  by_row->setAxis(0);
  network->markOutput(*by_row->getOutput(0));
  const auto outputs = run({{0.2f, 0.3f, 0.75f, -100, 1, 2, 3, 4}});
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(outputs[0], (V{0, 0.5f, 1, -64, 1, 2, 3, 4}));
  EXPECT_EQ(outputs[1], (V{0, 1, 4, -256, 8, 16, 48, 64}));
  EXPECT_EQ(outputs[2], (V{0, 0.5f, 1, -64, 4, 8, 12, 16}));
}

TEST_F(Network, RefusesTypesThatItCannotQuantizeTo) {
  const float one = 1;
  ITensor& x = input("x", Dims2(2, 4));
  ITensor& scale = *network->addConstant(Dims{0, {}}, Weights{DataType::kFLOAT, &one, 1})->getOutput(0);
  const auto has_no_shape = [](ILayer* layer) { return layer->getOutput(0)->getDimensions().nbDims == -1; };
  for (const DataType type : {DataType::kE8M0, DataType::kINT32, DataType::kFLOAT})
    EXPECT_TRUE(has_no_shape(network->addQuantize(x, scale, type)));
  for (const DataType type : {DataType::kFLOAT, DataType::kHALF})
    EXPECT_TRUE(has_no_shape(network->addDequantize(x, scale, type)));
  EXPECT_EQ(logger.errors.size(), 5u);
}

TEST_F(Network, MatrixTimesVector) {
  ITensor& m = input("m", Dims2(2, 2));
  ITensor& v = input("v", Dims{1, {2}});
  auto* product = network->addMatrixMultiply(m, MatrixOperation::kTRANSPOSE, v, MatrixOperation::kVECTOR);
  ASSERT_NE(product, nullptr) << logger.errors[0];
  network->markOutput(*product->getOutput(0));
  EXPECT_EQ(run({{1, 2, 3, 4}, {1, 1}}), (std::vector<V>{{4, 6}}));
}

TEST_F(Network, SliceForwardsBackwardsAndRepeating) {
  ITensor& x = input("x", Dims{1, {4}});
  const auto slice = [&](int64_t start, int64_t size, int64_t stride) {
    auto* layer = network->addSlice(x, Dims{1, {start}}, Dims{1, {size}}, Dims{1, {stride}});
    network->markOutput(*layer->getOutput(0));
  };
  slice(1, 2, 2);
  slice(3, 4, -1);
  slice(2, 3, 0);
  const auto outputs = run({{0, 1, 2, 3}});
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(outputs[0], (V{1, 3}));
  EXPECT_EQ(outputs[1], (V{3, 2, 1, 0}));
  EXPECT_EQ(outputs[2], (V{2, 2, 2}));
}

TEST_F(Network, InvalidArgumentsGiveNullAndOneReport) {
  ITensor& a = input("a", Dims2(1, 3));
  EXPECT_EQ(network->addElementWise(a, a, static_cast<ElementWiseOperation>(99)), nullptr);
  EXPECT_EQ(logger.errors.size(), 1u);
  EXPECT_EQ(network->addInput("a", DataType::kFLOAT, Dims2(1, 1)), nullptr);
  EXPECT_EQ(logger.errors.size(), 2u);
  EXPECT_EQ(network->addConcatenation(nullptr, 1), nullptr);
  EXPECT_EQ(logger.errors.size(), 3u);
  network->markOutput(a);
  EXPECT_EQ(logger.errors.size(), 4u);
  EXPECT_EQ(network->getNbOutputs(), 0);
  EXPECT_EQ(network->getNbLayers(), 0);
  EXPECT_NE(logger.errors[0].find("Error Code 3"), std::string::npos) << logger.errors[0];
}

// S81.
TEST_F(Network, NearestRecorderGetsTheReport) {
  Recorder outer, inner;
  builder->setErrorRecorder(&outer);
  EXPECT_EQ(network->getErrorRecorder(), &outer);
  EXPECT_EQ(network->addConcatenation(nullptr, 1), nullptr);
  EXPECT_EQ(outer.codes, (std::vector{ErrorCode::kINVALID_ARGUMENT}));
  network->setErrorRecorder(&inner);
  EXPECT_EQ(network->addConcatenation(nullptr, 1), nullptr);
  EXPECT_EQ(outer.codes.size(), 1u);
  EXPECT_EQ(inner.codes.size(), 1u);
  EXPECT_TRUE(logger.errors.empty());
  network->setErrorRecorder(nullptr);
  EXPECT_EQ(inner.references, 0);
  builder.reset();
  EXPECT_EQ(&network->getBuilder(), &network->getBuilder());  // outlives the application's builder
  network.reset();
  EXPECT_EQ(outer.references, 0);
}

// What a program of generation 10 has as its logger: log() is the first function of its table.
struct LoggerOfTen {
  static void log(LoggerOfTen* self, ILogger::Severity, const char* text) { self->texts.emplace_back(text); }
  void (*const* table)(LoggerOfTen*, ILogger::Severity, const char*) = &kTable;
  std::vector<std::string> texts;
  static constexpr void (*kTable)(LoggerOfTen*, ILogger::Severity, const char*) = &log;
};

TEST_F(Network, OtherGenerationsAreRefused) {
  LoggerOfTen of_ten;
  EXPECT_EQ(createInferBuilder_INTERNAL(&of_ten, 100300), nullptr);
  ASSERT_EQ(of_ten.texts.size(), 1u);
  EXPECT_NE(of_ten.texts[0].find("LATHE-"), std::string::npos) << of_ten.texts[0];
  EXPECT_EQ(createInferBuilder_INTERNAL(&logger, 130000), nullptr);  // how that calls a logger is not known
  EXPECT_TRUE(logger.errors.empty());
  EXPECT_EQ(createInferBuilder_INTERNAL(nullptr, NV_TENSORRT_VERSION), nullptr);
}

TEST_F(Network, StringsHaveALimit) {
  ITensor& a = input("a", Dims2(1, 3));
  auto* layer = network->addIdentity(a);
  layer->setName(std::string(4095, 'n').c_str());
  EXPECT_EQ(std::string(layer->getName()).size(), 4095u);
  layer->setName(std::string(4096, 'm').c_str());
  EXPECT_EQ(std::string(layer->getName()).front(), 'n');
  EXPECT_EQ(logger.errors.size(), 1u);
}

TEST_F(Network, FillCountsAlongDimensions) {
  const double start = 1;
  auto* fill = network->addFill(Dims{1, {4}}, FillOperation::kLINSPACE, DataType::kFLOAT);
  ASSERT_NE(fill, nullptr) << logger.errors[0];
  fill->setAlpha(start);
  fill->setBeta(0.5);
  network->markOutput(*fill->getOutput(0));
  EXPECT_EQ(run({}), (std::vector<V>{{1, 1.5, 2, 2.5}}));
}

TEST(Profile, RangesAreCheckedAndReadBack) {
  Messages logger;
  std::unique_ptr<IBuilder> builder{createInferBuilder(logger)};
  IOptimizationProfile* profile = builder->createOptimizationProfile();
  EXPECT_EQ(profile->getDimensions("x", OptProfileSelector::kMIN).nbDims, -1);
  EXPECT_TRUE(profile->setDimensions("x", OptProfileSelector::kMIN, Dims2(1, 3)));
  EXPECT_FALSE(profile->isValid());
  EXPECT_TRUE(profile->setDimensions("x", OptProfileSelector::kMAX, Dims2(8, 3)));
  EXPECT_FALSE(profile->setDimensions("x", OptProfileSelector::kOPT, Dims2(9, 3)));
  EXPECT_TRUE(profile->setDimensions("x", OptProfileSelector::kOPT, Dims2(4, 3)));
  EXPECT_TRUE(profile->isValid());
  EXPECT_EQ(profile->getDimensions("x", OptProfileSelector::kOPT).d[0], 4);
  EXPECT_EQ(profile->getNbShapeValues("x"), -1);
  const int64_t values[] = {1, 2};
  EXPECT_TRUE(profile->setShapeValuesV2("s", OptProfileSelector::kMIN, values, 2));
  EXPECT_EQ(profile->getShapeValuesV2("s", OptProfileSelector::kMIN)[1], 2);
  EXPECT_EQ(profile->getShapeValuesV2("s", OptProfileSelector::kMAX), nullptr);
  std::unique_ptr<IBuilderConfig> config{builder->createBuilderConfig()};
  EXPECT_EQ(config->addOptimizationProfile(profile), -1);  // "s" is incomplete
  EXPECT_EQ(config->getBuilderOptimizationLevel(), 3);
  config->setBuilderOptimizationLevel(7);
  EXPECT_EQ(config->getBuilderOptimizationLevel(), 3);
  EXPECT_TRUE(config->getFlag(BuilderFlag::kTF32));
}

TEST(TimingCaches, RoundTripAndDamage) {
  Messages logger;
  std::unique_ptr<IBuilder> builder{createInferBuilder(logger)};
  std::unique_ptr<IBuilderConfig> config{builder->createBuilderConfig()};
  std::unique_ptr<ITimingCache> cache{config->createTimingCache(nullptr, 0)};
  ASSERT_NE(cache, nullptr);
  EXPECT_EQ(cache->queryKeys(nullptr, 0), 0);
  EXPECT_EQ(cache->query(TimingCacheKey{}).tacticHash, TimingCacheValue::kINVALID_TACTIC_HASH);
  std::unique_ptr<IHostMemory> bytes{cache->serialize()};
  ASSERT_NE(bytes, nullptr);
  std::unique_ptr<ITimingCache> again{config->createTimingCache(bytes->data(), bytes->size())};
  EXPECT_NE(again, nullptr);
  static_cast<char*>(bytes->data())[9] ^= 1;
  EXPECT_EQ(config->createTimingCache(bytes->data(), bytes->size()), nullptr);
}

}  // namespace
}  // namespace nvinfer1
