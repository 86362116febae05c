// SPDX-License-Identifier: Apache-2.0
// Every allocation of the smaller objects may fail: runtime configurations and caches, refitters of both kinds, timing
// caches, debug tensors, layers, wrapped engines; and of questions to engines. A call that fails reports once and loses
// nothing.
#include <memory>

#include "NvOnnxParser.h"
#include "lathe.h"
#include "lathe_wrapper.h"
#include "onnx/model_bytes.h"
#include "robustness/allocation_sweep.h"
#include "robustness/count_errors.h"

namespace nvinfer1 {
namespace {

using lathe::CountErrors;
using namespace lathe::onnx;  // what writes the model

template <class T>
std::unique_ptr<T> own(T* object) {
  return std::unique_ptr<T>(object);
}

// y = relu(x * w), w all `value`.
std::string product_model(float value) {
  return model(graph({{node("MatMul", {"x", "w"}, {"p"}), node("Relu", {"p"}, {"y"})},
                      {raw_tensor<float>("w", 1, {8, 4}, std::vector<float>(32, value))},
                      {value_info("x", 1, {2, 8})},
                      {value_info("y", 1, {2, 4})}}));
}

class ObjectAllocationFailure : public testing::Test {
 protected:
  void SetUp() override {
    const auto builder = own(createInferBuilder(logger));
    const auto network = own(builder->createNetworkV2(0));
    const auto parser = own(nvonnxparser::createParser(*network, logger));
    const std::string bytes = product_model(1);
    ASSERT_TRUE(parser->parse(bytes.data(), bytes.size()));
    for (int32_t i = 0; i < network->getNbLayers(); ++i)
      if (network->getLayer(i)->getType() == LayerType::kMATRIX_MULTIPLY)
        network->markDebug(*network->getLayer(i)->getOutput(0));
    const auto config = own(builder->createBuilderConfig());
    config->setFlag(BuilderFlag::kREFIT);
    lathe::setBuildBudget(*config, 0);
    lathe::setCpuThreads(*config, 1);
    plan = own(builder->buildSerializedNetwork(*network, *config));
    ASSERT_NE(plan, nullptr);
    ASSERT_TRUE(lathe::setCpuThreads(*runtime, 1));
    engine = own(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    ASSERT_NE(engine, nullptr);
    const std::string nonsense(256, 'x');  // what the thread keeps for good: the text of its last error
    EXPECT_EQ(runtime->deserializeCudaEngine(nonsense.data(), nonsense.size()), nullptr);
    logger.errors = 0;
  }

  // `operation` says whether it succeeded; a failure is one report.
  template <class Operation>
  void sweep(long least, Operation&& operation) {
    EXPECT_GT(lathe::sweep_allocations([&] {
                logger.errors = 0;
                const bool done = operation();
                EXPECT_EQ(logger.errors, done ? 0 : 1);
                return done;
              }),
              least);
  }
  bool runs(IExecutionContext& context) {
    void* bindings[] = {x.data(), y.data()};
    return context.executeV2(bindings);
  }

  CountErrors logger;
  std::unique_ptr<IHostMemory> plan;
  std::unique_ptr<IRuntime> runtime{createInferRuntime(logger)};
  std::unique_ptr<ICudaEngine> engine;
  std::vector<float> x = std::vector<float>(16, 1), y = std::vector<float>(8);
};

TEST_F(ObjectAllocationFailure, RuntimeConfigurationsAndCaches) {
  sweep(5, [&] {
    const auto settings = own(engine->createRuntimeConfig());
    if (!settings) return false;
    const auto cache = own(settings->createRuntimeCache());
    if (!cache) return false;
    const auto bytes = own(cache->serialize());
    if (!bytes || !cache->deserialize(bytes->data(), bytes->size()) || !cache->reset()) return false;
    if (!settings->setRuntimeCache(*cache)) return false;
    const auto context = own(engine->createExecutionContext(settings.get()));
    if (!context) return false;
    const auto again = own(context->getRuntimeConfig());
    return again && runs(*context);
  });
}

TEST_F(ObjectAllocationFailure, Refitters) {
  const std::vector<float> w(32, 2);
  sweep(5, [&] {
    const auto refitter = own(createInferRefitter(*engine, logger));
    if (!refitter) return false;
    const char* name = nullptr;
    const int32_t all = refitter->getAllWeights(1, &name);
    if (all == 0) return false;
    return refitter->setNamedWeights(name, {DataType::kFLOAT, w.data(), 32}) && refitter->refitCudaEngine();
  });
  const auto context = own(engine->createExecutionContext());
  ASSERT_TRUE(runs(*context));
  EXPECT_EQ(y, std::vector<float>(8, 16));
}

TEST_F(ObjectAllocationFailure, RefittersOfModels) {
  const std::string bytes = product_model(3);
  sweep(100, [&] {
    const auto refitter = own(createInferRefitter(*engine, logger));
    if (!refitter) return false;
    const auto parser = own(nvonnxparser::createParserRefitter(*refitter, logger));
    return parser && parser->refitFromBytes(bytes.data(), bytes.size()) && refitter->refitCudaEngine();
  });
  const auto context = own(engine->createExecutionContext());
  ASSERT_TRUE(runs(*context));
  EXPECT_EQ(y, std::vector<float>(8, 24));
}

TEST_F(ObjectAllocationFailure, TimingCaches) {
  const auto builder = own(createInferBuilder(logger));
  sweep(5, [&] {
    const auto config = own(builder->createBuilderConfig());
    if (!config) return false;
    const auto cache = own(config->createTimingCache(nullptr, 0));
    if (!cache) return false;
    const auto bytes = own(cache->serialize());
    if (!bytes) return false;
    const auto other = own(config->createTimingCache(bytes->data(), bytes->size()));
    return other && other->combine(*cache, false) && config->setTimingCache(*other, false);
  });
}

TEST_F(ObjectAllocationFailure, DebugTensors) {
  struct Listener : IDebugListener {
    bool processDebugTensor(const void*, TensorLocation, DataType, const Dims&, const char*, cudaStream_t) override {
      return ++told > 0;
    }
    int told = 0;
  } listener;
  sweep(5, [&] {
    const auto context = own(engine->createExecutionContext());
    if (!context || !context->setDebugListener(&listener) || !context->setAllTensorsDebugState(true)) return false;
    const int told = listener.told;
    const bool done = runs(*context);
    EXPECT_EQ(listener.told, told + (done ? 1 : 0));
    return done;
  });
}

TEST_F(ObjectAllocationFailure, SerializationAndInspection) {
  sweep(5, [&] {
    const auto settings = own(engine->createSerializationConfig());
    if (!settings || !settings->setFlag(SerializationFlag::kINCLUDE_REFIT)) return false;
    const auto bytes = own(engine->serializeWithConfig(*settings));
    const auto inspector = bytes ? own(engine->createEngineInspector()) : nullptr;
    return inspector && *inspector->getLayerInformation(0, LayerInformationFormat::kONELINE) != 0;
  });
}

TEST_F(ObjectAllocationFailure, QuestionsToEnginesAndContexts) {
  const auto context = own(engine->createExecutionContext());
  constexpr auto kOpt = OptProfileSelector::kOPT;
  sweep(5, [&] {
    return engine->getTensorShape("x").nbDims == 2 && engine->getProfileShape("x", 0, kOpt).d[1] == 8 &&
           engine->getDeviceMemorySizeV2() >= 0 && engine->getTensorIOMode("y") == TensorIOMode::kOUTPUT &&
           context->setInputShape("x", Dims2(2, 8)) && context->getTensorShape("y").d[1] == 4 &&
           context->getTensorStrides("y").d[0] == 4 && context->getMaxOutputSize("y") == 32 &&
           context->inferShapes(0, nullptr) == 0 && context->allInputDimensionsSpecified() && runs(*context);
  });
}

// Layers of one input, of several, of an array; loops and conditionals, which keep lists of theirs.
bool add_layers(INetworkDefinition& network) {
  static const int32_t kRounds = 3;
  static const bool kYes = true;
  ITensor* x = network.addInput("x", DataType::kFLOAT, Dims2(2, 3));
  ILayer* sum = x ? network.addElementWise(*x, *x, ElementWiseOperation::kSUM) : nullptr;
  ITensor* twice = sum ? sum->getOutput(0) : nullptr;
  if (!twice) return false;
  ITensor* const both[] = {x, twice};
  if (!network.addConcatenation(both, 2) || !network.addEinsum(both, 2, "ij,kj->ik")) return false;
  ILoop* loop = network.addLoop();
  ILayer* rounds = network.addConstant(Dims{0, {}}, {DataType::kINT32, &kRounds, 1});
  ILayer* truth = network.addConstant(Dims{0, {}}, {DataType::kBOOL, &kYes, 1});
  if (!loop || !rounds || !truth || !loop->addTripLimit(*rounds->getOutput(0), TripLimit::kCOUNT)) return false;
  ILayer* carried = loop->addRecurrence(*x);
  ILayer* scanned = loop->addIterator(*twice);
  if (!carried || !scanned || !loop->addLoopOutput(*carried->getOutput(0), LoopOutput::kLAST_VALUE)) return false;
  IIfConditional* choice = network.addIfConditional();
  if (!choice || !choice->setCondition(*truth->getOutput(0))) return false;
  ILayer* input = choice->addInput(*x);
  ILayer* branch = input ? network.addActivation(*input->getOutput(0), ActivationType::kRELU) : nullptr;
  return branch && choice->addOutput(*branch->getOutput(0), *input->getOutput(0));
}

TEST_F(ObjectAllocationFailure, Layers) {
  const auto builder = own(createInferBuilder(logger));
  sweep(50, [&] {
    const auto network = own(builder->createNetworkV2(0));
    return network && add_layers(*network) && logger.errors == 0;
  });
}

TEST_F(ObjectAllocationFailure, WrappedEngines) {
  const auto shared = std::shared_ptr<IRuntime>(createInferRuntime(logger));
  ASSERT_TRUE(lathe::setCpuThreads(*shared, 1));
  const std::string bytes(static_cast<const char*>(plan->data()), plan->size());
  lathe::EngineFields fields;
  fields.name = "net";
  fields.target.kind = lathe::EngineTarget::Kind::kCPU;
  fields.target.name = "cpu";
  fields.inputs = {"x"};
  fields.outputs = {"y"};
  const std::string nonsense(256, 'x');
  EXPECT_EQ(lathe::EngineWrapper::create(shared, nonsense, fields), nullptr);
  sweep(20, [&] {
    const auto wrapped = lathe::EngineWrapper::create(shared, bytes, fields);
    lathe::EngineRecord record;
    if (!wrapped || !wrapped->record(record)) return false;
    std::vector<lathe::OutputTensor> outputs;
    lathe::InputTensor input;
    input.name = "x";
    input.data = x.data();
    input.dims = Dims2(2, 8);
    input.location = TensorLocation::kHOST;
    return wrapped->run({input}, outputs);
  });
}

}  // namespace
}  // namespace nvinfer1
