// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/emulated_engine.h"

#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/emulated_device.h"
#include "lowering/engine_fixture.h"

namespace lathe::cuda {
namespace {

std::unique_ptr<BuiltPlan> build(ir::Graph graph, int64_t least_pixel, bool measured) {
  const std::unique_ptr<Compiler> compiler = make_emulated_compiler();
  BuildOptions options;
  options.tactics = cuda_tactics();
  options.target = kEmulator;
  options.fuse_narrow_types = options.fuse_prologues = options.fuse_movement = true;
  options.least_pixel = least_pixel;
  options.tuner.compiler = compiler.get();
  options.tuner.target = make_emulated_device()->describe();
  options.tuner.target.limits = {};
  options.tuner.budget_seconds = measured ? 60 : 0;
  if (measured) options.tuner.device = make_emulated_device();
  Result<std::unique_ptr<BuiltPlan>> built = build_plan(std::move(graph), options);
  EXPECT_TRUE(built) << built.error().to_string();
  if (!built) return nullptr;
  EXPECT_EQ((*built)->report.tuned > 0, measured);
  for (const RegionReport& region : (*built)->report.regions)
    for (const std::string& refusal : region.refusals)
      EXPECT_EQ(refusal.find("differs"), std::string::npos) << region.name << ": " << refusal;
  return *std::move(built);
}

Kernels run(const std::string& body, const std::vector<Dims>& dims, double tolerance, int64_t least_pixel,
            bool measured) {
  Result<ir::Graph> graph = ir::parse_graph("graph \"g\" {\n" + body + "\n}");
  EXPECT_TRUE(graph) << graph.error().to_string();
  if (!graph) return {};
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < dims.size(); ++i)
    inputs.push_back(random_tensor(graph->inputs()[i]->dtype(), dims[i], static_cast<uint32_t>(i + 1)));
  const Result<std::vector<Tensor>> expected = ir::interpret(*graph, inputs);
  const std::unique_ptr<BuiltPlan> built = build(*std::move(graph), least_pixel, measured);
  if (!built || !expected) return {};
  Result<std::vector<std::byte>> bytes = plan::write_plan(built->plan);
  EXPECT_TRUE(bytes) << bytes.error().to_string();
  const auto engine = load_engine(*std::move(bytes), make_emulated_device());
  if (!engine) return {};
  const Result<std::unique_ptr<Context>> context = Context::create(engine);
  EXPECT_TRUE(context) << context.error().to_string();
  const std::vector<Tensor> outputs = run_engine(**context, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) expect_close(outputs[i], (*expected)[i], tolerance);
  Kernels kernels;
  for (const plan::Step& step : built->plan.steps) kernels.emplace_back(step.kernel());
  return kernels;
}

}  // namespace

Kernels run_on_emulator(const std::string& body, const std::vector<Dims>& dims, double tolerance, int64_t least_pixel) {
  const Kernels predicted = run(body, dims, tolerance, least_pixel, false);
  EXPECT_EQ(run(body, dims, tolerance, least_pixel, true), predicted);
  return predicted;
}

}  // namespace lathe::cuda
