// SPDX-License-Identifier: Apache-2.0
// Callbacks of the application that fail, lie or throw: the call that they are part of fails with one report, which
// names them, and everything works again when they do.
#include <functional>
#include <stdexcept>

#include "api/network_fixture.h"

namespace nvinfer1 {
namespace {

enum class Answer { good, none, throws, throws_a_number, misaligned };
constexpr Answer kBad[] = {Answer::none, Answer::throws, Answer::throws_a_number};

void throw_if_told(Answer answer) {
  if (answer == Answer::throws) throw std::runtime_error("what the application says");
  if (answer == Answer::throws_a_number) throw 7;
}

struct Outputs : IOutputAllocator {
  void* reallocateOutputAsync(const char*, void*, uint64_t, uint64_t, cudaStream_t) override {
    throw_if_told(answer);
    if (answer == Answer::none) return nullptr;
    return static_cast<std::byte*>(memory.get()) + (answer == Answer::misaligned ? 4 : 0);
  }
  void notifyShape(const char*, const Dims&) noexcept override { ++told; }
  Answer answer = Answer::good;
  int told = 0;
  std::shared_ptr<void> memory = context_memory(1024);
};

struct Listener : IDebugListener {
  bool processDebugTensor(const void*, TensorLocation, DataType, const Dims&, const char*, cudaStream_t) override {
    ++told;
    throw_if_told(answer);
    return answer == Answer::good;
  }
  Answer answer = Answer::good;
  int told = 0;
};

struct Writer : IStreamWriter {
  int64_t write(const void* data, int64_t size) override {
    throw_if_told(answer);
    if (answer == Answer::good) bytes.assign(static_cast<const char*>(data), static_cast<size_t>(size));
    return answer == Answer::good ? size : lie;
  }
  Answer answer = Answer::good;
  int64_t lie = 0;
  std::string bytes;
};

// sum = x + x, n from 1 to 8; hidden = |x| is a debug tensor; places = nonzero(hidden).
class Callbacks : public NetworkTest {
 protected:
  void SetUp() override {
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims{1, {-1}});
    ITensor* hidden = network->addUnary(*x, UnaryOperation::kABS)->getOutput(0);
    hidden->setName("hidden");
    ASSERT_TRUE(network->markDebug(*hidden));
    ASSERT_TRUE(network->markUnfusedTensorsAsDebugTensors());
    mark(network->addElementWise(*x, *x, ElementWiseOperation::kSUM)->getOutput(0), "sum");
    mark(network->addNonZero(*hidden, DataType::kINT64)->getOutput(0), "places");
    add_profile({{"x", Dims{1, {1}}, Dims{1, {4}}, Dims{1, {8}}}});
  }
  void load() {
    ASSERT_TRUE(make_context()) << logger.last();
    ASSERT_TRUE(context->setInputShape("x", Dims{1, {4}}));
    ASSERT_TRUE(context->setInputTensorAddress("x", x));
    ASSERT_TRUE(context->setTensorAddress("sum", sum.get()));
    ASSERT_TRUE(context->setTensorAddress("places", places.get()));
  }
  void expect_runs() {
    EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.last();
    EXPECT_TRUE(logger.text.empty()) << logger.last();
  }
  // `call` fails with one report, of the callback and what it threw.
  void expect_told(const std::function<bool()>& call, Answer answer, const char* callback) {
    EXPECT_FALSE(call()) << callback;
    ASSERT_EQ(logger.text.size(), 1u) << callback;
    const auto expect = [&](const char* words) {
      EXPECT_NE(logger.last().find(words), std::string::npos) << words << " is not in " << logger.last();
    };
    EXPECT_EQ(logger.last().find("LATHE-9999"), std::string::npos) << logger.last();
    if (answer == Answer::throws || answer == Answer::throws_a_number) {
      expect(callback);
      expect("has thrown an exception");
    }
    if (answer == Answer::throws) expect("what the application says");
    logger.text.clear();
  }
  void expect_run_fails(Answer answer, const char* callback) {
    expect_told([&] { return context->enqueueV3(nullptr); }, answer, callback);
  }

  alignas(256) const float x[8] = {1, -2, 0, 3};
  std::shared_ptr<void> sum = context_memory(256), places = context_memory(256);
};

TEST_F(Callbacks, OutputAllocators) {
  load();
  for (const char* output : {"sum", "places"}) {  // asked before the run, and in its midst
    Outputs outputs;
    ASSERT_TRUE(context->setOutputAllocator(output, &outputs));
    expect_runs();
    EXPECT_EQ(outputs.told, 1);
    for (const Answer answer : kBad) {
      outputs.answer = answer;
      expect_run_fails(answer, "IOutputAllocator::reallocateOutputAsync");
      outputs.answer = Answer::good;
      expect_runs();
    }
    if (on_gpu()) {  // whose kernels read and write 16 bytes at a time
      outputs.answer = Answer::misaligned;
      expect_run_fails(outputs.answer, output);
      outputs.answer = Answer::good;
      expect_runs();
    }
    ASSERT_TRUE(context->setOutputAllocator(output, nullptr));
    ASSERT_TRUE(context->setTensorAddress("sum", sum.get()) && context->setTensorAddress("places", places.get()));
  }
}

TEST_F(Callbacks, DebugListeners) {
  load();
  Listener listener;
  ASSERT_TRUE(context->setDebugListener(&listener));
  for (const bool unfused : {false, true}) {  // told behind the run, and in its midst
    ASSERT_TRUE(context->setAllTensorsDebugState(!unfused));
    ASSERT_TRUE(context->setUnfusedTensorsDebugState(unfused)) << logger.last();
    listener.told = 0;
    expect_runs();
    EXPECT_GT(listener.told, 0);
    for (const Answer answer : kBad) {
      listener.answer = answer;
      expect_run_fails(answer, "IDebugListener::processDebugTensor");
      listener.answer = Answer::good;
      expect_runs();
    }
  }
}

TEST_F(Callbacks, StreamWriters) {
  Writer writer;
  const auto build = [&] { return builder->buildSerializedNetworkToStream(*network, *config, writer); };
  for (const Answer answer : kBad) {
    writer.answer = answer;
    expect_told(build, answer, "IStreamWriter::write");
  }
  writer.answer = Answer::none;
  for (const int64_t lie : {int64_t{-1}, int64_t{1}, INT64_MAX}) {
    writer.lie = lie;
    expect_told(build, Answer::none, "IStreamWriter::write");
  }
  writer.answer = Answer::good;
  ASSERT_TRUE(build()) << logger.last();
  const std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
  EXPECT_NE(std::unique_ptr<ICudaEngine>(runtime->deserializeCudaEngine(writer.bytes.data(), writer.bytes.size())),
            nullptr);
}

// A monitor that ends the build at each of its steps in turn.
TEST_F(Callbacks, ProgressMonitors) {
  struct Monitor : IProgressMonitor {
    void phaseStart(const char*, const char*, int32_t) noexcept override { ++open; }
    bool stepComplete(const char*, int32_t) noexcept override { return left-- > 0; }
    void phaseFinish(const char*) noexcept override { --open; }
    int left = 0, open = 0;
  } monitor;
  config->setProgressMonitor(&monitor);
  int ended = 0;
  for (;; ++ended) {
    monitor.left = ended;
    const std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    EXPECT_EQ(monitor.open, 0) << "phases that did not finish, after step " << ended;
    if (plan) break;
    ASSERT_EQ(logger.text.size(), 1u) << ended;
    EXPECT_NE(logger.last().find("LATHE-3301"), std::string::npos) << logger.last();
    logger.text.clear();
  }
  EXPECT_GT(ended, 3);
  EXPECT_TRUE(logger.text.empty()) << logger.last();
}

// Of what a recorder answers nothing but that it overflows is believed, and it may make calls of its own.
TEST_F(Callbacks, ErrorRecorders) {
  struct Recorder : IErrorRecorder {
    int32_t getNbErrors() const noexcept override { return -1; }
    ErrorCode getErrorCode(int32_t) const noexcept override { return static_cast<ErrorCode>(99); }
    ErrorDesc getErrorDesc(int32_t) const noexcept override { return nullptr; }
    bool hasOverflowed() const noexcept override { return true; }
    void clear() noexcept override {}
    bool reportError(ErrorCode, ErrorDesc text) noexcept override {
      ++reports;
      if (context && reports == 1) context->setTensorAddress("nobody", nullptr);  // which reports, too
      return text == nullptr;
    }
    RefCount incRefCount() noexcept override { return -5; }
    RefCount decRefCount() noexcept override { return 77; }
    IExecutionContext* context = nullptr;
    int reports = 0;
  } recorder;
  load();
  context->setErrorRecorder(&recorder);
  recorder.context = context.get();
  EXPECT_FALSE(context->setInputShape("x", Dims{1, {99}}));
  EXPECT_EQ(recorder.reports, 2);
  EXPECT_EQ(logger.text.size(), 2u) << "it says that it has no room for more";
  logger.text.clear();
  EXPECT_EQ(context->getErrorRecorder(), &recorder);
  expect_runs();
  context->setErrorRecorder(nullptr);
}

}  // namespace
}  // namespace nvinfer1
