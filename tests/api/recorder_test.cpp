// SPDX-License-Identifier: Apache-2.0
// Where errors and log lines go: to the nearest error recorder up the chain of owners, else to the logger of the object
// that everything comes from.
#include <atomic>
#include <thread>

#include "NvOnnxParser.h"
#include "api/small_engine.h"

namespace nvinfer1 {
namespace {

struct Recorder : IErrorRecorder {
  int32_t getNbErrors() const noexcept override { return static_cast<int32_t>(codes.size()); }
  ErrorCode getErrorCode(int32_t i) const noexcept override { return codes[static_cast<size_t>(i)]; }
  ErrorDesc getErrorDesc(int32_t i) const noexcept override { return texts[static_cast<size_t>(i)].c_str(); }
  bool hasOverflowed() const noexcept override { return codes.size() > most; }
  void clear() noexcept override { codes.clear(), texts.clear(); }
  bool reportError(ErrorCode code, ErrorDesc text) noexcept override {
    codes.push_back(code);
    texts.emplace_back(text);
    return false;
  }
  RefCount incRefCount() noexcept override { return ++references; }
  RefCount decRefCount() noexcept override { return --references; }
  std::vector<ErrorCode> codes;
  std::vector<std::string> texts;
  size_t most = SIZE_MAX;
  int references = 0;
};

class Recorders : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    engine = load(*build());
    context.reset(engine->createExecutionContext());
    sibling.reset(engine->createExecutionContext());
  }
  void TearDown() override {  // while the recorders are there
    for (auto* each : {&context, &sibling}) each->reset();
    engine.reset();
  }
  // `call` fails, and `recorder` (null: the logger) alone is told, once.
  template <class Call>
  void expect_at(Recorder* recorder, Call&& call) {
    for (Recorder* one : {&outer, &inner}) one->clear();
    const size_t logged = logger.text.size();
    call();
    for (const Recorder* one : {&outer, &inner}) EXPECT_EQ(one->getNbErrors(), one == recorder);
    EXPECT_EQ(logger.text.size(), logged + (recorder ? 0 : 1)) << logger.last();
  }
  static void fail(IExecutionContext& context) { EXPECT_EQ(context.getTensorAddress("nobody"), nullptr); }

  Recorder outer, inner;
  std::unique_ptr<IExecutionContext> sibling;
};

// S78, S79.
TEST_F(Recorders, AreInheritedAndHeldOnce) {
  expect_at(nullptr, [&] { fail(*context); });
  runtime->setErrorRecorder(&outer);
  EXPECT_EQ(outer.references, 1);
  EXPECT_EQ(engine->getErrorRecorder(), &outer);
  EXPECT_EQ(context->getErrorRecorder(), &outer);
  EXPECT_EQ(outer.references, 1);
  expect_at(&outer, [&] { fail(*context); });
  expect_at(&outer, [&] { EXPECT_EQ(engine->getIOTensorName(9), nullptr); });
  engine->setErrorRecorder(&inner);
  expect_at(&inner, [&] { fail(*context); });
  expect_at(&inner, [&] { fail(*sibling); });
  expect_at(&outer, [&] { EXPECT_EQ(runtime->deserializeCudaEngine(nullptr, 0), nullptr); });
  engine->setErrorRecorder(nullptr);
  EXPECT_EQ(inner.references, 0);
  expect_at(&outer, [&] { fail(*context); });
  runtime->setErrorRecorder(nullptr);
  EXPECT_EQ(outer.references, 0);
  expect_at(nullptr, [&] { fail(*context); });
}

// S80.
TEST_F(Recorders, OfAChildCatchItsErrorsAlone) {
  engine->setErrorRecorder(&outer);
  context->setErrorRecorder(&inner);
  expect_at(&inner, [&] { fail(*context); });
  expect_at(&outer, [&] { fail(*sibling); });
  const std::unique_ptr<IEngineInspector> inspector(engine->createEngineInspector());
  expect_at(&outer, [&] { inspector->getLayerInformation(99, LayerInformationFormat::kJSON); });
  inspector->setErrorRecorder(&inner);
  EXPECT_EQ(inner.references, 2);
  expect_at(&inner, [&] { inspector->getLayerInformation(99, LayerInformationFormat::kJSON); });
  context->setErrorRecorder(&inner);  // the same again
  EXPECT_EQ(inner.references, 2);
}

// S78.
TEST_F(Recorders, LetGoWhenTheirObjectsEnd) {
  engine->setErrorRecorder(&outer);
  context->setErrorRecorder(&inner);
  context.reset();
  EXPECT_EQ(inner.references, 0);
  engine.reset();
  EXPECT_EQ(outer.references, 1) << "the other context inherits it";
  expect_at(&outer, [&] { fail(*sibling); });
  sibling.reset();
  EXPECT_EQ(outer.references, 0);
}

// What a recorder has no room for is not lost.
TEST_F(Recorders, ThatOverflowLeaveErrorsToTheLogger) {
  outer.most = 1;
  context->setErrorRecorder(&outer);
  fail(*context);
  EXPECT_FALSE(outer.hasOverflowed());
  EXPECT_TRUE(logger.text.empty()) << logger.last();
  fail(*context);
  EXPECT_TRUE(outer.hasOverflowed());
  ASSERT_EQ(logger.text.size(), 1u);
  EXPECT_NE(logger.last().find("nobody"), std::string::npos) << logger.last();
  outer.clear();
  fail(*context);
  EXPECT_EQ(logger.text.size(), 1u);
}

TEST_F(Recorders, OfBuildersHearOfNetworksAndConfigurations) {
  builder->setErrorRecorder(&outer);
  expect_at(&outer, [&] { EXPECT_EQ(network->getLayer(99), nullptr); });
  expect_at(&outer, [&] { config->setMaxAuxStreams(-1); });
  network->setErrorRecorder(&inner);
  expect_at(&inner, [&] { EXPECT_EQ(network->getLayer(99), nullptr); });
  expect_at(&inner, [&] {
    network->addIdentity(*network->getInput(0));
    network->getLayer(-1);
  });
  network->setErrorRecorder(nullptr);
  builder->setErrorRecorder(nullptr);
  EXPECT_EQ(outer.references + inner.references, 0);
}

TEST_F(Recorders, AreToldWhatKindOfErrorItWas) {
  context->setErrorRecorder(&inner);
  const auto expect_code = [&](ErrorCode code, auto&& call) {
    inner.clear();
    call();
    ASSERT_EQ(inner.getNbErrors(), 1);
    EXPECT_EQ(inner.getErrorCode(0), code) << inner.getErrorDesc(0);
    EXPECT_EQ(std::string(inner.getErrorDesc(0)).rfind("LATHE-", 0), 0u) << inner.getErrorDesc(0);
  };
  expect_code(ErrorCode::kINVALID_ARGUMENT, [&] { fail(*context); });
  expect_code(ErrorCode::kINVALID_ARGUMENT, [&] { EXPECT_FALSE(context->setInputShape("x", Dims2(9, 3))); });
  expect_code(ErrorCode::kINVALID_ARGUMENT, [&] { EXPECT_FALSE(context->enqueueV3(nullptr)); });  // nothing is set
  expect_code(ErrorCode::kINVALID_STATE, [&] { EXPECT_FALSE(context->reportToProfiler()); });
  expect_code(ErrorCode::kINVALID_STATE, [&] { context->setDeviceMemoryV2(&inner, 64); });
  expect_code(ErrorCode::kINVALID_CONFIG, [&] { EXPECT_FALSE(context->setCommunicator(&inner)); });
  context->setErrorRecorder(nullptr);

  context.reset(engine->createExecutionContext(ExecutionContextAllocationStrategy::kUSER_MANAGED));
  context->setErrorRecorder(&inner);
  const float x[3] = {};
  float y[2];
  EXPECT_TRUE(context->setInputShape("x", Dims2(1, 3)));
  EXPECT_TRUE(context->setInputTensorAddress("x", x));
  EXPECT_TRUE(context->setTensorAddress("y", y));
  if (!on_gpu())  // whose one kernel needs no memory
    expect_code(ErrorCode::kINVALID_STATE, [&] { EXPECT_FALSE(context->enqueueV3(nullptr)); });
  runtime->setErrorRecorder(&inner);
  expect_code(ErrorCode::kFAILED_INITIALIZATION, [&] { runtime->deserializeCudaEngine("nonsense", 8); });
  runtime->setErrorRecorder(nullptr);
}

// Who follows the log in detail sees when it happened.
// S81.
TEST_F(Recorders, LeaveTheLoggerADetail) {
  struct Details : ILogger {
    void log(Severity severity, const char* message) noexcept override {
      if (std::string(message).find("'nobody'") != std::string::npos) severities.push_back(severity);
    }
    std::vector<Severity> severities;
  } details;
  const std::unique_ptr<IRuntime> watched(createInferRuntime(details));
  const std::unique_ptr<IHostMemory> plan(engine->serialize());
  const std::unique_ptr<ICudaEngine> twin(watched->deserializeCudaEngine(plan->data(), plan->size()));
  EXPECT_EQ(twin->getTensorShape("nobody").nbDims, -1);
  watched->setErrorRecorder(&outer);
  EXPECT_EQ(twin->getTensorShape("nobody").nbDims, -1);
  EXPECT_EQ(outer.getNbErrors(), 1);
  EXPECT_EQ(details.severities, (std::vector{ILogger::Severity::kERROR, ILogger::Severity::kVERBOSE}));
  watched->setErrorRecorder(nullptr);
}

// S77.
TEST_F(Recorders, EachRuntimeHasItsLogger) {
  Errors other;
  const std::unique_ptr<IRuntime> second(createInferRuntime(other));
  const std::unique_ptr<IHostMemory> plan(engine->serialize());
  std::unique_ptr<ICudaEngine> twin(second->deserializeCudaEngine(plan->data(), plan->size()));
  const std::unique_ptr<IExecutionContext> its(twin->createExecutionContext());
  fail(*its);
  EXPECT_EQ(other.text.size(), 1u);
  EXPECT_EQ(logger.text.size(), 0u);
  fail(*context);
  EXPECT_EQ(other.text.size(), 1u);
  EXPECT_EQ(logger.text.size(), 1u);
  EXPECT_EQ(second->getLogger(), &other);
}

// S74.
TEST(Loggers, AreNeeded) {
  EXPECT_EQ(createInferBuilder_INTERNAL(nullptr, NV_TENSORRT_VERSION), nullptr);
  EXPECT_EQ(createInferRuntime_INTERNAL(nullptr, NV_TENSORRT_VERSION), nullptr);
  EXPECT_EQ(createInferRefitter_INTERNAL(nullptr, nullptr, NV_TENSORRT_VERSION), nullptr);
  EXPECT_EQ(createNvOnnxParser_INTERNAL(nullptr, nullptr, NV_ONNX_PARSER_VERSION), nullptr);
}

// Whole lines from whatever thread, and none once the objects are gone.
struct Watching : ILogger {
  void log(Severity, const char* message) noexcept override {
    late += closed;
    broken += std::string(message).find('\n') != std::string::npos && std::string(message).back() == '\n';
    ++lines;
  }
  std::atomic<bool> closed = false;
  std::atomic<int> late = 0, broken = 0, lines = 0;
};

// S66, S76.
TEST(Loggers, HearNothingBehindTheLastObject) {
  Watching watching;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const std::unique_ptr<IBuilder> builder(createInferBuilder(watching));
      const std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
      const std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
      lathe::setBuildBudget(*config, 0);
      ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(4, 4));
      network->markOutput(*network->addActivation(*x, ActivationType::kTANH)->getOutput(0));
      const std::unique_ptr<ICudaEngine> engine(builder->buildEngineWithConfig(*network, *config));
      ASSERT_NE(engine, nullptr);
      EXPECT_EQ(engine->getIOTensorName(7), nullptr);
    });
  for (std::thread& thread : threads) thread.join();
  watching.closed = true;
  lathe::releaseIdleDevices();
  EXPECT_GE(watching.lines, 4);
  EXPECT_EQ(watching.late, 0);
  EXPECT_EQ(watching.broken, 0);
}

}  // namespace
}  // namespace nvinfer1
