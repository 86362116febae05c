// SPDX-License-Identifier: Apache-2.0
// Devices that no code outside their own folders knows: plans are built for and run on each.
#include <gtest/gtest.h>

#include "device/family.h"
#include "device/interpreter_device.h"
#include "lowering/engine_fixture.h"

namespace lathe {
namespace {

constexpr const char* kNetwork = R"(graph "g" {
  input %x: f32[6, 10]
  input %y: f32[1, 10]
  %a = elementwise{op=add}(%x, %y)
  %b = activation{op=relu}(%a)
  %s = softmax{axis=1}(%b)
  %m = elementwise{op=mul}(%s, %x)
  %t = transpose{perm=[1, 0]}(%m)
  output %t
})";

struct Built {
  std::unique_ptr<BuiltPlan> plan;
  std::shared_ptr<const Engine> engine;
};

Built build_for(const Backend& backend, std::shared_ptr<Device> device, const char* network = kNetwork) {
  Result<BackendBuild> prepared = backend.prepare(backend.name(), {});
  EXPECT_TRUE(prepared);
  BuildOptions options;
  use_backend(*prepared, options);
  Result<ir::Graph> graph = ir::parse_graph(network);
  EXPECT_TRUE(graph) << graph.error().to_string();
  Result<std::unique_ptr<BuiltPlan>> built = build_plan(*std::move(graph), options);
  EXPECT_TRUE(built) << built.error().to_string();
  Built made{*std::move(built), nullptr};
  EXPECT_EQ(made.plan->plan.target, backend.name());
  made.engine = load_engine(*plan::write_plan(made.plan->plan), std::move(device));
  return made;
}

std::vector<Tensor> network_inputs() {
  return {random_tensor(DType::f32, {6, 10}, 1), random_tensor(DType::f32, {1, 10}, 2)};
}

TEST(Devices, TheInterpreterComputes) {
  const Built built =
      build_for(interpreter::InterpretingBackend(), std::make_shared<interpreter::InterpretingDevice>());
  ASSERT_NE(built.engine, nullptr);
  int interpreted = 0, evaluated = 0;
  for (const plan::Step& step : built.plan->plan.steps) {
    interpreted += step.kernel() == "interpret";
    evaluated += step.kernel() == "eval";
  }
  EXPECT_GE(interpreted, 2);
  EXPECT_GE(evaluated, 1) << "softmax is no expression";
  const std::vector<Tensor> inputs = network_inputs();
  const Result<ir::Graph> graph = ir::parse_graph(kNetwork);
  const Result<std::vector<Tensor>> expected = ir::interpret(*graph, inputs);
  ASSERT_TRUE(expected);
  const Result<std::unique_ptr<Context>> context = Context::create(built.engine);
  ASSERT_TRUE(context) << context.error().to_string();
  for (int run = 0; run < 2; ++run) {
    const std::vector<Tensor> outputs = run_engine(**context, inputs);
    ASSERT_EQ(outputs.size(), 1u);
    expect_close(outputs[0], (*expected)[0], 1e-6);
  }
}

// Copies that no kernel does are evaluated in host memory, in whatever direction they go.
TEST(Devices, WhatGoesBackwardsIsCopiedOnTheHost) {
  constexpr const char* kBackwards = R"(graph "g" {
    input %x: i64[3, 7]
    %start = constant{value=i64[2]{-1, 5}}()
    %end = constant{value=i64[2]{-100, -100}}()
    %axes = constant{value=i64[2]{0, 1}}()
    %steps = constant{value=i64[2]{-1, -2}}()
    %y = slice(%x, %start, %end, %axes, %steps)
    output %y
  })";
  const Built built =
      build_for(interpreter::InterpretingBackend(), std::make_shared<interpreter::InterpretingDevice>(), kBackwards);
  ASSERT_NE(built.engine, nullptr);
  ASSERT_EQ(built.plan->plan.steps.size(), 1u);
  EXPECT_TRUE(built.plan->plan.steps[0].is<plan::Copy>());
  Tensor x = *Tensor::allocate(DType::i64, {3, 7});
  for (int64_t i = 0; i < x.volume(); ++i) x.mutable_as<int64_t>()[i] = i;
  const auto context = Context::create(built.engine);
  ASSERT_TRUE(context) << context.error().to_string();
  const Tensor y = run_engine(**context, std::span(&x, 1))[0];
  ASSERT_EQ(y.dims(), Dims({3, 3}));
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 3; ++j) EXPECT_EQ(y.as<int64_t>()[3 * i + j], 7 * (2 - i) + 5 - 2 * j);
}

// The command line and the public interface find it by its name, as every device of families.def.
TEST(Devices, TheNullDeviceCounts) {
  const Result<std::string> name = resolve_target("null");
  ASSERT_TRUE(name);
  const DeviceFamily* family = find_family(*name);
  const Backend* backend = find_backend(*name);
  ASSERT_NE(family, nullptr);
  ASSERT_NE(backend, nullptr);
  const std::shared_ptr<Device> device = *family->open(1);
  const null::Counts& counts = static_cast<const null::NullDevice&>(*device).counts();
  const Built built = build_for(*backend, device);
  ASSERT_NE(built.engine, nullptr);
  for (const plan::Step& step : built.plan->plan.steps) EXPECT_EQ(step.kernel(), "null");
  const Result<std::unique_ptr<Context>> context = Context::create(built.engine);
  ASSERT_TRUE(context) << context.error().to_string();
  const std::vector<Tensor> inputs = network_inputs();
  run_engine(**context, inputs);
  const auto steps = static_cast<int64_t>(built.plan->plan.steps.size());
  EXPECT_EQ(counts.launches, steps);
  const int64_t allocations = counts.allocations;
  run_engine(**context, inputs);
  EXPECT_EQ(counts.launches, 2 * steps);
  EXPECT_EQ(counts.allocations, allocations) << "a second run allocates";
}

// On the CPU as well, where no configuration was measured; twice the rows take longer.
TEST(Devices, PredictedTimesAreTimes) {
  const auto predicted = [](int rows) {
    BuildReport report;
    build_engine(fmt::format("graph \"g\" {{ input %x: f32[{0}, 512] input %w: f32[512, 256]\n"
                             "%y = matmul(%x, %w)\n %s = softmax{{axis=1}}(%y)\n output %s }}",
                             rows),
                 native_options(), 2, &report);
    double sum = 0;
    for (const RegionReport& region : report.regions)
      for (const Choice::Finalist& finalist : region.candidates) {
        EXPECT_GT(finalist.predicted_us, 0) << finalist.tactic;
        sum += finalist.predicted_us;
      }
    return sum;
  };
  const double once = predicted(256), twice = predicted(512);
  EXPECT_GT(once, 0);
  EXPECT_GT(twice, 1.5 * once);
}

// Nothing was measured: a tile of a product would have sixteen columns for the one output channel of each group.
TEST(Devices, PredictedTimesChooseDepthwiseKernels) {
  Result<ir::Graph> graph = ir::parse_graph(R"(graph "g" {
    input %x: f32[1, 64, 28, 28]
    input %b: f32[64]
    input %w: f32[64, 1, 3, 3]
    %y = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1], groups=64}(%x, %w, %b)
    output %y
  })");
  ASSERT_TRUE(graph) << graph.error().to_string();
  Result<std::unique_ptr<BuiltPlan>> built = build_plan(*std::move(graph), native_options());
  ASSERT_TRUE(built) << built.error().to_string();
  bool is_depthwise = false;
  for (const plan::Step& step : (*built)->plan.steps) is_depthwise |= step.kernel() == "depthwise";
  EXPECT_TRUE(is_depthwise);
}

TEST(Devices, NamesAreResolved) {
  EXPECT_EQ(*resolve_target("sm_90"), "cuda-sm_90");
  EXPECT_EQ(*resolve_target("cuda:1"), "cuda:1");
  EXPECT_EQ(*resolve_target("cpu"), "cpu");
  for (const char* wrong : {"", "cud", "cuda:", "cuda:x", "cuda:-1", "cuda-sm_1", "sm_", "cpu-", "cpu-z80", "gpu"})
    EXPECT_FALSE(resolve_target(wrong)) << wrong;
  EXPECT_EQ(find_family("cuda-sm_90")->name(), "cuda");
  EXPECT_EQ(find_family("cpu-x86_64-avx2")->name(), "cpu");
  EXPECT_EQ(find_family("tpu-v9"), nullptr);
  EXPECT_EQ(find_backend("cudasm_90"), nullptr);
}

TEST(Devices, PlansOfOtherDevicesAreRefused) {
  const Built built =
      build_for(interpreter::InterpretingBackend(), std::make_shared<interpreter::InterpretingDevice>());
  ASSERT_NE(built.engine, nullptr);
  auto bytes = std::make_shared<std::vector<std::byte>>(*plan::write_plan(built.plan->plan));
  const auto engine = Engine::load(*bytes, bytes, {std::make_shared<null::NullDevice>(), {}});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, ErrorCode::plan_target);
}

}  // namespace
}  // namespace lathe
