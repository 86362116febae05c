// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "fixtures/test_tensor.h"
#include "ir/interpret.h"
#include "ops/rules.h"
#include "passes/pass.h"

namespace lathe {
namespace {

constexpr Content kIntegers{Content::between, 0, 100};

// The graph without ops of `gone` answers as before. `batch` is the open dimension.
void expect_decomposed(const std::string& text, OpKind gone, double tolerance = 1e-12) {
  Result<ir::Graph> graph = ir::parse_graph(text);
  ASSERT_TRUE(graph) << graph.error().message;
  ir::Graph before = graph->clone();
  PassContext context;
  context.arithmetic.f32_rows = true;
  const Result<bool> changed = run_pass("decompose", *graph, context);
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_TRUE(*changed) << text;
  const Result<> valid = ir::verify(*graph);
  ASSERT_TRUE(valid) << valid.error().message;
  for (const auto& node : graph->nodes()) EXPECT_FALSE(node->is(gone)) << text;
  std::mt19937 random(91);
  std::vector<Tensor> inputs;
  for (const ir::Value* input : graph->inputs()) {
    Dims dims;
    for (const Expr& dim : input->shape()) dims.push_back(dim.as_constant().value_or(3));
    inputs.push_back(random_tensor(input->dtype(), dims, random, is_floating(input->dtype()) ? Content() : kIntegers));
  }
  const auto want = ir::interpret(before, inputs), got = ir::interpret(*graph, inputs);
  ASSERT_TRUE(want) << want.error().message;
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_EQ((*got)[0].dims(), (*want)[0].dims()) << text;
  const std::vector<double> a = to_doubles((*got)[0]), b = to_doubles((*want)[0]);
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance * std::max(1.0, std::fabs(b[i]))) << text;
}

std::string graph_of(const std::string& input, const std::string& lines) {
  return "graph g {\n  input %x: " + input + "\n" + lines + "  output %y\n}\n";
}

TEST(Decompose, ConvolutionsOfComputedPixels) {
  for (const std::string kernel : {"1, 1", "1", "1, 1, 1"}) {
    const std::string extents = kernel == "1" ? "h" : kernel == "1, 1" ? "h, 5" : "h, 5, 2";
    const std::string inputs = "graph g {\n  input %x: f32[b, 6, " + extents + "]\n  input %w: f32[4, 6, " + kernel +
                               "]\n  input %v: f32[4]\n  %y = convolution";
    for (const char* operands : {"(%x, %w)", "(%x, %w, %v)", "{padding_mode=same_upper}(%x, %w, %v)"})
      expect_decomposed(inputs + operands + "\n  output %y\n}\n", OpKind::convolution, 1e-5);
  }
}

TEST(Decompose, Attention) {
  const auto of = [](const std::string& k, const std::string& attributes, const std::string& mask = "",
                     const std::string& sinks = "") {
    std::string text =
        "graph g {\n  input %q: f64[b, 4, n, 8]\n  input %k: f64[b, " + k + ", 8]\n  input %v: f64[b, " + k + ", 6]\n";
    if (!mask.empty()) text += "  input %m: " + mask + "\n";
    if (!sinks.empty()) text += "  input %s: " + sinks + "\n";
    const std::string last =
        (mask.empty() ? sinks.empty() ? "" : ", _" : ", %m") + std::string(sinks.empty() ? "" : ", %s");
    expect_decomposed(text + "  %y = attention" + attributes + "(%q, %k, %v" + last + ")\n  output %y\n}\n",
                      OpKind::attention);
  };
  for (const char* k : {"4, n", "2, n", "1, 7"}) {
    of(k, "");
    of(k, "{scale=0.25, softcap=2.5}");
    of(k, "{causal=true}");
  }
  of("2, n", "{scale=0.5}", "f64[b, 1, n, n]");
  of("4, 7", "{causal=true}", "f32[7]");
  of("4, 7", "", "bool[4, 1, 7]");
  of("2, n", "{scale=0.5, softcap=2.5}", "", "f64[4]");
  of("4, 7", "{zeros_for_nan=true}", "bool[4, 1, 7]", "f16[4]");
}

TEST(Decompose, RowsOfDoubles) {
  expect_decomposed(graph_of("f64[b, 5, 4]", "  %y = softmax{axis=1}(%x)\n"), OpKind::softmax);
  expect_decomposed(graph_of("f64[b, 5]", "  %y = softmax{log=true}(%x)\n"), OpKind::softmax);
  const std::string row = "  %s = constant{value=f64[4]{~1}}()\n  %t = constant{value=f64[4]{~2}}()\n";
  expect_decomposed(graph_of("f64[b, 5, 4]", row + "  %y = layer_normalization(%x, %s, %t)\n"),
                    OpKind::layer_normalization);
  expect_decomposed(graph_of("f64[b, 5, 4]", row + "  %y = rms_normalization(%x, %s)\n"), OpKind::rms_normalization);
  const std::string image = "f64[b, 4, 3, 5]";
  expect_decomposed(graph_of(image, row + "  %y = instance_normalization(%x, %s, %t)\n"),
                    OpKind::instance_normalization);
  expect_decomposed(graph_of(image, row + "  %y = group_normalization{groups=2}(%x, %s, %t)\n"),
                    OpKind::group_normalization);
  expect_decomposed(graph_of(image, row + "  %v = unary{op=exp}(%s)\n  %y = batch_normalization(%x, %s, %t, %t, %v)\n"),
                    OpKind::batch_normalization);
}

TEST(Decompose, ConvolutionsOfDoubles) {
  const auto expect = [](const std::string& weights, const std::string& attributes) {
    expect_decomposed(graph_of("f64[b, 4, 9, 8]", "  %w = constant{value=f64[" + weights +
                                                      "]{~1}}()\n  %c = constant{value=f64[4]{~2}}()\n"
                                                      "  %y = convolution{" +
                                                      attributes + "}(%x, %w, %c)\n"),
                      OpKind::convolution);
  };
  expect("4, 4, 1, 1", "");
  expect("4, 4, 3, 3", "pads_begin=[1, 1], pads_end=[1, 1]");
  expect("4, 4, 3, 2", "stride=[2, 3], dilation=[2, 1], pads_begin=[1, 0], pads_end=[0, 2]");
  expect("4, 1, 3, 3", "groups=4, stride=[2, 2], pads_begin=[1, 1], pads_end=[1, 1]");
}

TEST(Decompose, PoolingOfWhatIsNotF32) {
  const std::string window = "window=[3, 2], stride=[2, 1], pads_begin=[1, 0], pads_end=[1, 1]";
  for (const std::string type : {"f64", "i32", "i64", "u8", "i8"})
    expect_decomposed(graph_of(type + "[b, 4, 9, 8]", "  %y = pooling{op=max, " + window + "}(%x)\n"), OpKind::pooling);
  expect_decomposed(graph_of("f64[b, 4, 9, 8]", "  %y = pooling{op=average, window=[3, 2]}(%x)\n"), OpKind::pooling);
  expect_decomposed(
      graph_of("f64[b, 4, 9, 8]", "  %y = pooling{op=average, count_include_pad=true, " + window + "}(%x)\n"),
      OpKind::pooling);
}

TEST(Decompose, LeavesFloatsAlone) {
  Result<ir::Graph> graph = ir::parse_graph(graph_of("f32[b, 4, 9, 8]", "  %y = pooling{window=[3, 2]}(%x)\n"));
  ASSERT_TRUE(graph) << graph.error().message;
  PassContext context;
  context.arithmetic.f32_rows = true;
  EXPECT_FALSE(*run_pass("decompose", *graph, context));
}

// Other passes recognise a softmax in what it becomes.
TEST(Decompose, ComesAfterTheOtherPasses) {
  for (const bool skips : {false, true}) {
    Result<ir::Graph> graph = ir::parse_graph(graph_of("f64[b, 5]", "  %y = softmax{axis=1}(%x)\n"));
    ASSERT_TRUE(graph) << graph.error().message;
    PassContext context;
    context.arithmetic.f32_rows = true;
    if (skips) context.skip = {"decompose"};
    ASSERT_TRUE(run_passes(*graph, context));
    const auto& nodes = graph->nodes();
    EXPECT_EQ(std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return node->is(OpKind::softmax); }),
              skips);
  }
}

}  // namespace
}  // namespace lathe
