// SPDX-License-Identifier: Apache-2.0
// Graphs whose expressions become programs before kernels, built for the emulator: the results are those of the plain
// evaluation, also where no kernel takes the program.
#include "build/engine_fixture.h"
#include "cuda/emulated_device.h"
#include "kernels/cuda/cuda_tactics.h"

namespace lathe::cuda {
namespace {

class PrologueEngines : public testing::Test {
 protected:
  // The names of the kernels, whether the cost model chose them or measurements, with checks of each result.
  static std::vector<std::string> run(const std::string& body, const std::vector<Dims>& dims, double tolerance = 1e-5) {
    const std::vector<std::string> predicted = run(body, dims, tolerance, false);
    EXPECT_EQ(run(body, dims, tolerance, true), predicted);
    return predicted;
  }

 private:
  static std::vector<std::string> run(const std::string& body, const std::vector<Dims>& dims, double tolerance,
                                      bool measured) {
    Result<ir::Graph> graph = ir::parse_graph("graph \"g\" {\n" + body + "\n}");
    EXPECT_TRUE(graph) << graph.error().to_string();
    if (!graph) return {};
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < dims.size(); ++i)
      inputs.push_back(random_tensor(graph->inputs()[i]->dtype(), dims[i], static_cast<uint32_t>(i + 1)));
    const Result<std::vector<Tensor>> expected = ir::interpret(*graph, inputs);
    const std::unique_ptr<BuiltPlan> built = build(*std::move(graph), measured);
    if (!built || !expected) return {};
    Result<std::vector<std::byte>> bytes = plan::write_plan(built->plan);
    EXPECT_TRUE(bytes) << bytes.error().to_string();
    const auto engine = load_engine(*std::move(bytes), make_emulated_device());
    if (!engine) return {};
    const Result<std::unique_ptr<Context>> context = Context::create(engine);
    EXPECT_TRUE(context) << context.error().to_string();
    const std::vector<Tensor> outputs = run_engine(**context, inputs);
    for (size_t i = 0; i < outputs.size(); ++i) expect_close(outputs[i], (*expected)[i], tolerance);
    std::vector<std::string> kernels;
    for (const plan::Step& step : built->plan.steps) kernels.push_back(step.kernel);
    return kernels;
  }
  static std::unique_ptr<BuiltPlan> build(ir::Graph graph, bool measured) {
    const std::unique_ptr<Compiler> compiler = make_emulated_compiler();
    BuildOptions options;
    options.tactics = cuda_tactics();
    options.target = kEmulator;
    options.fuse_narrow_types = options.fuse_prologues = true;
    options.tuner.compiler = compiler.get();
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
};

using Kernels = std::vector<std::string>;

TEST_F(PrologueEngines, Reduction) {
  EXPECT_EQ(run(R"(
    symbol n in [1, 9]
    input %x: f16[n, 3, 40]
    input %y: f16[n, 3, 40]
    input %b: f16[3, 1]
    %p = elementwise{op=mul}(%x, %y)
    %q = elementwise{op=add}(%p, %b)
    %r = reduce{op=mean, axes=[2]}(%q)
    output %r)",
                {{5, 3, 40}, {5, 3, 40}, {3, 1}}, 2e-3),
            Kernels({"reduce"}));
}

TEST_F(PrologueEngines, NormalizationOfAnImage) {
  EXPECT_EQ(run(R"(
    input %x: f32[2, 8, 6, 6]
    input %g: f32[2, 8, 1, 1]
    %w = constant{value=f32[8, 8, 3, 3]{~1}}()
    %s = constant{value=f32[8]{~2}}()
    %b = constant{value=f32[8]{~3}}()
    %y = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%x, %w)
    %p = elementwise{op=mul}(%y, %g)
    %q = activation{op=silu}(%p)
    %e = elementwise{op=add}(%q, %y)
    %n = instance_normalization(%e, %s, %b)
    output %n
    output %q)",
                {{2, 8, 6, 6}, {2, 8, 1, 1}}),
            Kernels({"copy", "conv", "pointwise", "normalization", "copy", "copy"}));
}

TEST_F(PrologueEngines, AttentionWithBiases) {
  EXPECT_EQ(run(R"(
    symbol n in [1, 4]
    input %q: f16[n, 2, 20, 16]
    input %k: f16[n, 2, 37, 16]
    input %v: f16[n, 2, 37, 16]
    input %b: f16[2, 1, 16]
    %p = elementwise{op=add}(%q, %b)
    %r = elementwise{op=mul}(%k, %b)
    %s = elementwise{op=sub}(%v, %b)
    %y = attention{scale=0.25}(%p, %r, %s)
    %z = elementwise{op=add}(%y, %q)
    output %z)",
                {{2, 2, 20, 16}, {2, 2, 37, 16}, {2, 2, 37, 16}, {2, 1, 16}}, 4e-3),
            Kernels({"attention"}));
}

// Convolutions gather pixels of three channels one by one: the expression is a step of its own, and a whole one.
TEST_F(PrologueEngines, ExpressionsThatNoKernelTakes) {
  const Kernels kernels = run(R"(
    input %x: f32[4, 3, 6, 6]
    %w = constant{value=f32[5, 3, 1, 1]{~1}}()
    %p = activation{op=silu}(%x)
    %q = elementwise{op=mul}(%p, %x)
    %y = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%q, %w)
    %z = activation{op=relu}(%y)
    output %z)",
                              {{4, 3, 6, 6}});
  EXPECT_EQ(kernels, Kernels({"pointwise", "conv", "copy"}));
}

}  // namespace
}  // namespace lathe::cuda
