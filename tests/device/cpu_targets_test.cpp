// SPDX-License-Identifier: Apache-2.0
// Plans for CPUs that are not here: what is chosen for them comes from the table.
#include <gtest/gtest.h>

#include <algorithm>

#include "device/family.h"
#include "kernels/cpu/target.h"
#include "lowering/engine_fixture.h"
#include "tuning/backend.h"

namespace lathe {
namespace {

constexpr const char* kProduct = R"(graph "g" {
  input %x: f32[256, 512]
  %w = constant{value=f32[512, 512]{~1}}()
  %y = matmul(%x, %w)
  output %y
})";

std::vector<std::string> targets(bool here) {
  std::vector<std::string> found;
  for (const char* name : {"cpu-x86_64-baseline", "cpu-x86_64-avx2", "cpu-x86_64-avx512", "cpu-x86_64-vnni",
                           "cpu-x86_64-bf16", "cpu-x86_64-amx", "cpu-arm64-baseline"})
    if (cpu::is_here(*cpu::find_processor(name)) == here) found.emplace_back(name);
  return found;
}

std::unique_ptr<BuiltPlan> build_for(const BackendBuild& backend) {
  BuildOptions options;
  use_backend(backend, options);
  options.tuner.budget_seconds = backend.device ? 0 : 60;  // without a device nothing is measured
  Result<ir::Graph> graph = ir::parse_graph(kProduct);
  EXPECT_TRUE(graph) << graph.error().to_string();
  Result<std::unique_ptr<BuiltPlan>> built = build_plan(*std::move(graph), options);
  EXPECT_TRUE(built) << built.error().to_string();
  return built ? *std::move(built) : nullptr;
}

TEST(CpuTargets, AnotherCpuIsWhatTheTableSays) {
  ASSERT_GE(targets(false).size(), 3u);
  for (const std::string& name : targets(false)) {
    const cpu::Processor& processor = *cpu::find_processor(name);
    const Result<BackendBuild> backend = prepare_build(name, {6, {}, {}});
    ASSERT_TRUE(backend) << name;
    EXPECT_EQ(backend->device, nullptr) << name;
    EXPECT_EQ(backend->timing_key, name);
    EXPECT_EQ(backend->target.name, name);
    EXPECT_EQ(backend->target.cores, 6) << name;
    EXPECT_EQ(backend->target.clock_mhz, processor.clock_mhz) << name;
    EXPECT_EQ(backend->target.cache_bytes, processor.cache_bytes) << name;
    EXPECT_EQ(backend->traits.arithmetic.integer_products, processor.products >= cpu::NarrowProducts::vnni) << name;
    EXPECT_EQ(backend->traits.arithmetic.bf16_factors, processor.products >= cpu::NarrowProducts::bf16) << name;
    EXPECT_EQ(prepare_build(name, {})->target.cores, processor.threads) << name;
  }
}

TEST(CpuTargets, ThisCpuIsMeasured) {
  ASSERT_GE(targets(true).size(), 1u);
  for (const std::string& name : targets(true)) {
    const Result<BackendBuild> backend = prepare_build(name, {2, {}, {}});
    ASSERT_TRUE(backend) << name;
    ASSERT_NE(backend->device, nullptr) << name;
    EXPECT_EQ(backend->target.name, name);
    EXPECT_EQ(backend->traits.arithmetic.integer_products, cpu::multiplies_bytes()) << name;
    EXPECT_EQ(backend->traits.arithmetic.bf16_factors, cpu::multiplies_bf16()) << name;
    EXPECT_TRUE(backend->device->check_target(name)) << name;
    EXPECT_NE(backend->timing_key, name);
  }
  EXPECT_EQ(prepare_build("cpu", {})->target.name, cpu::target_name());
}

// A product that computes for far longer than it moves: its predicted time is that of the multiplications. With matrix
// registers it is between that of a float as six products of its terms there, and that of vectors.
TEST(CpuTargets, PredictedTimesAreThoseOfTheTarget) {
  for (const std::string& name : targets(false)) {
    const Result<BackendBuild> backend = prepare_build(name, {2, {}, {}});
    ASSERT_TRUE(backend) << name;
    const std::unique_ptr<BuiltPlan> built = build_for(*backend);
    ASSERT_NE(built, nullptr);
    EXPECT_EQ(built->plan.target, name);
    EXPECT_EQ(built->plan.tuned_on, name);
    EXPECT_EQ(built->plan.threads, 2u);
    EXPECT_EQ(built->report.tuned, 0);
    ASSERT_EQ(built->report.regions.size(), 1u);
    ASSERT_FALSE(built->report.regions[0].candidates.empty()) << name;
    const Target& target = backend->target;
    const auto computing = [&](double rate) { return 256.0 * 512 * 512 / (rate * target.cores * target.clock_mhz); };
    const double predicted = built->report.regions[0].candidates[0].predicted_us;
    EXPECT_GT(predicted, computing(std::max(target.products.f32, target.products.matrix / 6))) << name;
    EXPECT_LT(predicted, 1.5 * computing(target.products.f32)) << name;
  }
}

// A plan for less than this CPU has runs here, and one for more is refused with both names.
TEST(CpuTargets, PlansRunWhereTheirTargetIs) {
  const std::vector<std::string> runnable = cpu::runnable_targets();
  const Tensor x = random_tensor(DType::f32, {256, 512}, 1);
  const Result<ir::Graph> graph = ir::parse_graph(kProduct);
  const Result<std::vector<Tensor>> expected = ir::interpret(*graph, {&x, 1});
  ASSERT_TRUE(expected);
  for (const bool here : {true, false})
    for (const std::string& name : targets(here)) {
      const std::unique_ptr<BuiltPlan> built = build_for(*prepare_build(name, {2, {}, {}}));
      ASSERT_NE(built, nullptr);
      const auto bytes = std::make_shared<std::vector<std::byte>>(*plan::write_plan(built->plan));
      const std::shared_ptr<Device> device = *find_family(name)->open(2);
      const Result<std::shared_ptr<const Engine>> engine = Engine::load(*bytes, bytes, {device, {}});
      if (std::ranges::count(runnable, name) == 0) {
        ASSERT_FALSE(engine) << name;
        EXPECT_EQ(engine.error().code, ErrorCode::plan_target) << name;
        for (const std::string& part : {name, cpu::target_name()})
          EXPECT_NE(engine.error().message.find(part), std::string::npos) << engine.error().message;
        continue;
      }
      ASSERT_TRUE(engine) << name << engine.error().to_string();
      const Result<std::unique_ptr<Context>> context = Context::create(*engine);
      ASSERT_TRUE(context) << name;
      const std::vector<Tensor> outputs = run_engine(**context, {&x, 1});
      ASSERT_EQ(outputs.size(), 1u);
      expect_close(outputs[0], (*expected)[0], 2e-5);
    }
}

TEST(CpuTargets, WhatIsNoCpuIsRefused) {
  for (const char* name : {"cpu-z80", "cpu-x86_64-avx", "cpu-"}) {
    const Result<BackendBuild> backend = prepare_build(name, {});
    ASSERT_FALSE(backend) << name;
    EXPECT_EQ(backend.error().code, ErrorCode::config_invalid);
    EXPECT_NE(backend.error().message.find(name), std::string::npos);
  }
}

}  // namespace
}  // namespace lathe
