// SPDX-License-Identifier: Apache-2.0
// What runs of plans with control flow cost and show: memory, hooks, threads.
#include <chrono>
#include <thread>

#include "NvInfer.h"
#include "runtime/block_plans.h"
#include "runtime/memory_check.h"

namespace lathe {
namespace {

using Id = plan::TensorId;
constexpr Id kNone = plan::kNoTensor;

// Adds 1 to x in n rounds.
struct Counting : PlanMaker {
  Counting() {
    const Id x = input("x", DType::i64, {}), n = input("n", DType::i64, {}), y = output("y", DType::i64, {});
    const Id one = number(1), param = buffer("param", DType::i64, {}), result = buffer("result", DType::i64, {});
    const size_t at = loop(1, {n, kNone, x}, {y});
    begin_body(at, {kNone, kNone, param});
    elementwise("add", param, one, result);
    end_body(at, {kNone, result});
  }
};

// The body copies a value; the number of the last round comes out.
struct Copying : PlanMaker {
  Copying() {
    const Id n = input("n", DType::i64, {}), y = output("y", DType::i64, {}), last = output("last", DType::i64, {});
    const Id seven = number(7), none = number(-1);
    const Id param = buffer("param", DType::i64, {}), result = buffer("result", DType::i64, {});
    const Id round = buffer("round", DType::i64, {}), former = buffer("former", DType::i64, {});
    const size_t at = loop(2, {n, kNone, seven, none}, {y, last});
    begin_body(at, {round, kNone, param, former});
    copy(param, result);
    end_body(at, {kNone, result, round});
  }
};

TEST(BlockRuns, AMillionRoundsTakeNoMemory) {
  for (const auto& inner : devices()) {
    const auto device = std::make_shared<CountingDevice>(inner);
    Copying maker;
    const auto context = maker.context(device);
    ASSERT_TRUE(context);
    run_engine(*context, std::vector<Tensor>{number(5000)});
    device->allocations = 0;
    const auto start = std::chrono::steady_clock::now();
    const std::vector<Tensor> outputs = run_engine(*context, std::vector<Tensor>{number(1000000)});
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    RecordProperty(std::string("nanoseconds_per_round_") + std::string(device->name()),
                   std::to_string(took.count() * 1e3));
    EXPECT_EQ(device->allocations, 0);
    expect_close(outputs[0], number(7), 0);
    expect_close(outputs[1], number(999999), 0);
  }
}

// A list that grows by 4 KiB in each round is allocated anew few times, and not at all in the second run.
TEST(BlockRuns, GrowingValuesAreAllocatedNowAndThen) {
  PlanMaker maker;
  const Id n = maker.input("n", DType::i64, {}), piece = maker.input("piece", DType::f32, {1024});
  const Expr before = maker.computed("before"), after = maker.computed("after");
  const Id y = maker.output("y", DType::f32, {after});
  const Id list = maker.slot("list", DType::f32, {before}), longer = maker.slot("longer", DType::f32, {after});
  const size_t at = maker.loop(1, {n, kNone, piece}, {longer});
  maker.begin_body(at, {kNone, kNone, list});
  maker.evaluate("concat", "axis=0", {list, piece}, {longer});
  maker.end_body(at, {kNone, longer});
  maker.copy(longer, y);
  for (const auto& inner : devices()) {
    const auto device = std::make_shared<CountingDevice>(inner);
    const auto context = maker.context(device);
    ASSERT_TRUE(context);
    const std::vector<Tensor> inputs = {number(500), random_tensor(DType::f32, {1024}, 1)};
    for (const int most : {100, 10}) {
      device->allocations = 0;
      EXPECT_EQ(run_engine(*context, inputs)[0].dims(), (Dims{501 * 1024}));
      EXPECT_LT(device->allocations, most);
    }
  }
}

TEST(BlockRuns, ContextsRunAtOnce) {
  Counting maker;
  const auto engine = maker.load(test_device());
  ASSERT_TRUE(engine) << engine.error().to_string();
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const auto context = *Context::create(*engine);
      for (int64_t n = 0; n < 50; ++n)
        expect_close(run_engine(*context, std::vector<Tensor>{number(t), number(n)})[0], number(t + n), 0);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(BlockRuns, HooksSeeEachRound) {
  for (const auto& device : devices()) {
    Counting maker;
    const auto context = maker.context(device);
    ASSERT_TRUE(context);
    std::vector<std::string> timed;
    std::vector<int64_t> seen;
    context->hooks.profiler = [&](const plan::Step& step, double milliseconds) {
      EXPECT_GE(milliseconds, 0);
      timed.push_back(step.name);
    };
    context->hooks.observer = [&](const plan::TensorDesc&, const Tensor& content) -> Result<> {
      seen.push_back(content.at(0));
      return {};
    };
    run_engine(*context, std::vector<Tensor>{number(7), number(3)});
    EXPECT_EQ(timed, (std::vector<std::string>{"elementwise", "elementwise", "elementwise", "block0"}));
    EXPECT_EQ(seen, (std::vector<int64_t>{8, 9, 10, 10}));
  }
}

struct Times final : nvinfer1::IProfiler {
  void reportLayerTime(const char* name, float milliseconds) noexcept override {
    layers.emplace_back(name);
    EXPECT_GE(milliseconds, 0);
  }
  std::vector<std::string> layers;
};
struct Silent final : nvinfer1::ILogger {
  void log(Severity, const char*) noexcept override {}
};

TEST(BlockRuns, TheInterfaceTellsSumsOfRounds) {
  Counting maker;
  const auto loaded = maker.load(test_device());
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  Silent log;
  const std::unique_ptr<nvinfer1::IRuntime> runtime(nvinfer1::createInferRuntime(log));
  const std::span<const std::byte> bytes = (*loaded)->bytes();
  const std::unique_ptr<nvinfer1::ICudaEngine> engine(runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
  ASSERT_TRUE(engine);
  const std::unique_ptr<nvinfer1::IExecutionContext> context(engine->createExecutionContext());
  ASSERT_TRUE(context);
  Times times;
  context->setProfiler(&times);
  int64_t x = 4, n = 6, y = 0;
  void* addresses[] = {&x, &n, &y};
  ASSERT_TRUE(context->executeV2(addresses));
  EXPECT_EQ(y, 10);
  EXPECT_EQ(times.layers, (std::vector<std::string>{"block0", "elementwise"}));
}

}  // namespace
}  // namespace lathe
