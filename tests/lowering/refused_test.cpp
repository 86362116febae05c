// SPDX-License-Identifier: Apache-2.0
// What tactics refuse of a fusion, or of one of two problems that look alike.
#include <gtest/gtest.h>

#include "ir/interpret.h"
#include "lowering/engine_fixture.h"
#include "lowering/region.h"

namespace lathe {
namespace {

// The engine's kernels, once its results are the plain evaluation's.
std::vector<std::string> kernels_of(const std::string& text, const std::vector<Dims>& dims,
                                    const BuildOptions& options = native_options()) {
  const Result<ir::Graph> graph = ir::parse_graph(text);
  EXPECT_TRUE(graph) << graph.error().to_string();
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < dims.size(); ++i)
    inputs.push_back(random_tensor(DType::f32, dims[i], static_cast<uint32_t>(i + 1)));
  const Result<std::vector<Tensor>> expected = ir::interpret(*graph, inputs);
  EXPECT_TRUE(expected) << expected.error().to_string();
  const auto engine = build_engine(text, options);
  if (!engine) return {};
  const std::unique_ptr<Context> context = *Context::create(engine);
  const std::vector<Tensor> got = run_engine(*context, inputs);
  for (size_t i = 0; i < got.size(); ++i) expect_close(got[i], (*expected)[i], 1e-5);
  std::vector<std::string> kernels;
  for (const plan::Step& step : engine->plan().steps) kernels.emplace_back(step.kernel());
  return kernels;
}

// Both have the same sizes while they are tuned, but the fast kernel knows the padding of only one.
TEST(Refused, OneOfTwoProblemsOfEqualSizes) {
  const std::vector<std::string> kernels = kernels_of(R"(graph "g" {
    symbol h in [4, 16]
    input %x: f32[1, 8, 16, 16]
    input %y: f32[1, 8, h, 16]
    %w = constant{value=f32[8, 4, 3, 3]{~1}}()
    %a = deconvolution{padding_mode=same_lower, stride=[2, 2]}(%x, %w)
    %b = deconvolution{padding_mode=same_lower, stride=[2, 2]}(%y, %w)
    output %a
    output %b
  })",
                                                      {{1, 8, 16, 16}, {1, 8, 16, 16}});
  EXPECT_FALSE(kernels.empty());
}

// No kernel of a CPU reads padding in an expression: the padding is a step, and what follows it another.
TEST(Refused, PaddingBeforeAnExpression) {
  const std::vector<std::string> kernels = kernels_of(R"(graph "g" {
    input %x: f32[4, 30]
    input %y: f32[4, 34]
    %pads = constant{value=i64[4]{0, 2, 0, 2}}()
    %p = pad(%x, %pads)
    %a = elementwise{op=add}(%p, %y)
    %m = elementwise{op=mul}(%a, %y)
    %r = activation{op=relu}(%m)
    output %r
  })",
                                                      {{4, 30}, {4, 34}});
  EXPECT_EQ(kernels.size(), 2u) << testing::PrintToString(kernels);
}

// Kernels of CPUs write one result of a program behind an op. Where a backend says otherwise, they are asked.
TEST(Refused, FurtherResults) {
  constexpr OpKind kNormalizations[] = {OpKind::layer_normalization};
  BuildOptions options = native_options();
  options.traits.further_results = kNormalizations;
  const std::vector<std::string> kernels = kernels_of(R"(graph "g" {
    input %x: f32[4, 30]
    %w = constant{value=f32[30]{~1}}()
    %n = layer_normalization(%x, %w)
    %r = activation{op=relu}(%n)
    output %n
    output %r
  })",
                                                      {{4, 30}}, options);
  ASSERT_EQ(kernels.size(), 2u) << testing::PrintToString(kernels);
  EXPECT_EQ(kernels[0], "normalization");
}

// Of two producers, the one that is why no tactic takes the region; else the last.
TEST(Refused, TheProducerThatIsToBlame) {
  const Result<ir::Graph> graph = ir::parse_graph(R"(graph "g" {
    input %a: f32[4, 8]
    input %b: f32[8, 4]
    %y = matmul(%a, %b)
    output %y
  })");
  ASSERT_TRUE(graph) << graph.error().to_string();
  Region region = region_alone(*graph->nodes().back(), graph->symbol_ranges());
  for (const size_t input : {0, 1}) region.producers[input] = region.expression;
  RefusedFusions first, last;
  first.add(region, {"a program before it"}, 0);
  EXPECT_TRUE(first.has_producer(*region.root, 0));
  EXPECT_FALSE(first.has_producer(*region.root, 1));
  last.add(region, {"a program before it"});
  EXPECT_FALSE(last.has_producer(*region.root, 0));
  EXPECT_TRUE(last.has_producer(*region.root, 1));
  EXPECT_EQ(last.size(), 1u);
  EXPECT_EQ(last.asked(), 1u);
  last.add(region, {"a program before it", "another"});  // of grouping that goes on making it: an error, and no end
  EXPECT_EQ(last.size(), 1u);
  EXPECT_EQ(last.asked(), 2u);
  EXPECT_EQ(last.last_in_vain(),
            "'y' is grouped as before though input 1 is written before it is read, for no kernel takes it: a program "
            "before it; another");
}

}  // namespace
}  // namespace lathe
