// SPDX-License-Identifier: Apache-2.0
// Builds in which a launch of several steps does not compile, or does not load: it costs a warning, the steps are
// launched separately, and the engine's numbers are right.
#include "device/cuda/compiled_anew_fixture.h"
#include "device/cuda/toolchain.h"
#include "lowering/build.h"
#include "plan/writer.h"
#include "runtime/context.h"
#include "tuning/backend.h"

namespace lathe::cuda {
namespace {

class JoinedLaunchesTest : public CompiledAnewTest {
 protected:
  // The names of the steps of relu(x) and -y, once what they compute is right.
  std::vector<std::string> build_and_run() {
    std::vector<std::string> names;
    Result<ir::Graph> graph = ir::parse_graph(R"(graph "g" {
      input %x: f32[40]
      input %y: f32[8]
      %a = activation{op=relu}(%x)
      %b = unary{op=neg}(%y)
      output %a
      output %b
    })");
    EXPECT_TRUE(graph) << graph.error().message;
    Result<BackendBuild> backend = find_backend("cuda")->prepare("cuda", {});
    EXPECT_TRUE(backend) << backend.error().message;
    if (!graph || !backend) return names;
    BuildOptions options;
    use_backend(*backend, options);
    options.tuner.budget_seconds = 0;
    options.log = &log_;
    options.tuner.log = &log_;
    const Result<std::unique_ptr<BuiltPlan>> built = build_plan(*std::move(graph), options);
    EXPECT_TRUE(built) << built.error().message;
    if (!built) return names;
    EXPECT_EQ((*built)->report.regions.size(), (*built)->plan.steps.size());
    for (const plan::Step& step : (*built)->plan.steps) names.push_back(step.name);
    run(**built);
    return names;
  }

  std::vector<std::string> taken_warnings() { return std::exchange(log_.lines, {}); }

 private:
  static void run(const BuiltPlan& built) {
    const auto bytes = plan::write_plan(built.plan);
    ASSERT_OK(bytes);
    const auto device = *open_device(0);
    const auto engine = lathe::Engine::load(*bytes, nullptr, {device, {}});
    ASSERT_OK(engine);
    const std::unique_ptr<Context> context = *Context::create(*engine);
    std::vector<float> x(40), y(8), a(40), b(8);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 20;
    for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(i) - 3;
    std::byte* const addresses[] = {reinterpret_cast<std::byte*>(x.data()), reinterpret_cast<std::byte*>(y.data()),
                                    reinterpret_cast<std::byte*>(a.data()), reinterpret_cast<std::byte*>(b.data())};
    for (uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(context->set_address(i, addresses[i]));
    ASSERT_OK(context->run());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(a[i], std::max(x[i], 0.0f)) << i;
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(b[i], -y[i]) << i;
  }

  Warnings log_;
};

size_t loads() {
  size_t count = 0;
  for (size_t i = 0; i < fake_cuda_calls(); ++i) count += std::string_view(fake_cuda_call(i)) == "cuModuleLoadData";
  return count;
}

TEST_F(JoinedLaunchesTest, AreOneStep) {
  EXPECT_EQ(build_and_run().size(), 1u);
  EXPECT_TRUE(taken_warnings().empty());
}

TEST_F(JoinedLaunchesTest, TheCompilerCrashes) {
  const std::vector<std::string> joined = build_and_run();
  releaseIdleDevices();
  setenv("FAKE_NVRTC_FAULT", "crash:namespace part1", 1);
  const std::vector<std::string> names = build_and_run();
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0] + " | " + names[1], joined.at(0));
  const std::vector<std::string> warnings = taken_warnings();
  ASSERT_EQ(warnings.size(), 1u) << testing::PrintToString(warnings);
  EXPECT_NE(warnings[0].find(names[0]), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("launched separately"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("signal 11"), std::string::npos) << warnings[0];
}

TEST_F(JoinedLaunchesTest, TheDriverRefusesTheirCode) {
  constexpr int kInvalidImage = 200;
  const size_t before = loads();
  fake_cuda_fail("cuModuleLoadData", 1, kInvalidImage, 0);
  const std::vector<std::string> names = build_and_run();
  EXPECT_EQ(fake_cuda_failures(), 1u);
  EXPECT_EQ(loads() - before, 3u) << "the joined code, and that of two steps";
  EXPECT_EQ(names.size(), 2u);
  const std::vector<std::string> warnings = taken_warnings();
  ASSERT_EQ(warnings.size(), 1u) << testing::PrintToString(warnings);
  EXPECT_NE(warnings[0].find("launched separately"), std::string::npos) << warnings[0];
}

}  // namespace
}  // namespace lathe::cuda
