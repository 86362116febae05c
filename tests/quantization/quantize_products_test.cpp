// SPDX-License-Identifier: Apache-2.0
// Float networks that get levels of 8 bits, and batches that say which.
#include "quantization/quantize_products.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fixtures/test_tensor.h"
#include "ir/interpret.h"
#include "quantization/calibration.h"
#include "quantization/thresholds.h"

namespace lathe {
namespace {

// A residual block and a classifier; the first convolution has too few channels for integers of CPUs.
constexpr const char* kNetwork = R"(graph g {
  input %x: f32[2, 3, 6, 6]
  %w0 = constant{value=f32[8, 3, 3, 3]{~1}}()
  %a = convolution{pads_begin=[1, 1], pads_end=[1, 1]}(%x, %w0)
  %b = activation{op=relu}(%a)
  %w1 = constant{value=f32[8, 8, 3, 3]{~2}}()
  %c = convolution{pads_begin=[1, 1], pads_end=[1, 1]}(%b, %w1)
  %d = elementwise{op=add}(%c, %b)
  %e = reduce{op=mean, keepdims=false}(%d, %axes)
  %w2 = constant{value=f32[8, 4]{~3}}()
  %y = matmul(%e, %w2)
  output %y
})";

ir::Graph network() {
  std::string text = kNetwork;
  text.insert(text.find("  %e"), "  %axes = constant{value=i64[2]{2, 3}}()\n");
  Result<ir::Graph> graph = ir::parse_graph(text);
  EXPECT_TRUE(graph) << graph.error().to_string();
  return graph ? *std::move(graph) : ir::Graph();
}

PassContext on_cpu() {
  PassContext context;
  context.arithmetic = {.integer_products = true, .weighted_products = true};
  return context;
}

Tensor batch(uint32_t seed) { return random_tensor(DType::f32, {2, 3, 6, 6}, seed); }

// What the plain evaluation sees of a tensor.
Histogram plain_histogram(const ir::Graph& graph, const std::string& tensor, const std::vector<Tensor>& batches) {
  Histogram histogram;
  for (const Tensor& each : batches)
    EXPECT_TRUE(ir::interpret(graph, {&each, 1}, [&](const ir::Value& value, const Tensor& content) -> Result<> {
      return value.name() == tensor ? histogram.add(content) : Result<>();
    }));
  return histogram;
}

TEST(Calibration, SeesWhatThePlainEvaluationGives) {
  const ir::Graph graph = network();
  const std::vector<std::string> tensors = {"x", "b", "e"};
  Result<std::unique_ptr<Calibration>> calibration = Calibration::create(graph, nullptr, tensors, 1);
  ASSERT_TRUE(calibration) << calibration.error().to_string();
  ASSERT_EQ((*calibration)->inputs().size(), 1u);
  EXPECT_EQ((*calibration)->inputs()[0].dims, (Dims{2, 3, 6, 6}));
  const std::vector<Tensor> batches = {batch(1), batch(2), batch(3)};
  for (const Tensor& each : batches) ASSERT_TRUE((*calibration)->add({&each, 1}));
  for (const std::string& tensor : tensors) {
    const Histogram &got = (*calibration)->histograms().at(tensor), want = plain_histogram(graph, tensor, batches);
    EXPECT_NEAR(got.largest(), want.largest(), 1e-4 * want.largest()) << tensor;
    EXPECT_NEAR(entropy_threshold(got), entropy_threshold(want), 0.05 * want.largest()) << tensor;
    EXPECT_EQ(got.zeros() > 0, tensor == "b");
  }
}

TEST(Calibration, TakesTheSizesThatItIsTold) {
  Result<ir::Graph> graph = ir::parse_graph(
      "graph g {\n  input %x: f32[n, 4]\n  input %s: i64[2]\n  %y = reshape(%x, %s)\n  %z = unary{op=exp}(%y)\n"
      "  output %z\n}");
  ASSERT_TRUE(graph) << graph.error().to_string();
  const std::vector<std::string> tensors = {"z"};
  ProfileShapes sizes;
  EXPECT_FALSE(Calibration::create(*graph, &sizes, tensors, 1));
  sizes.inputs["x"] = {{1, 4}, {3, 4}, {9, 4}};
  sizes.inputs["s"] = {{1, 1}, {2, 6}, {9, 9}, true};
  Result<std::unique_ptr<Calibration>> calibration = Calibration::create(*graph, &sizes, tensors, 1);
  ASSERT_TRUE(calibration) << calibration.error().to_string();
  ASSERT_EQ((*calibration)->inputs().size(), 1u);
  const Tensor x = Tensor::of<float>({3, 4}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2});
  ASSERT_TRUE((*calibration)->add({&x, 1}));
  EXPECT_NEAR((*calibration)->histograms().at("z").largest(), std::exp(2), 1e-4);
  EXPECT_FALSE(Calibration::create(*graph, &sizes, std::vector<std::string>{"nothing"}, 1));
}

TEST(QuantizeProducts, AsksForWhatTheTargetMultiplies) {
  const ir::Graph graph = network();
  PassContext cpu = on_cpu(), floats, gpu;
  gpu.arithmetic.integer_products = true;
  EXPECT_EQ(*quantizable_tensors(graph, cpu), (std::vector<std::string>{"x", "b", "e"}));
  EXPECT_EQ(*quantizable_tensors(graph, gpu), (std::vector<std::string>{"x", "b", "e"}));
  cpu.pins = {{"y", DType::f32, {}}};
  ir::Graph pinned = graph.clone();
  EXPECT_EQ(*quantizable_tensors(pinned, cpu), (std::vector<std::string>{"x", "b"}));
}

TEST(QuantizeProducts, GivesAnswersNearTheFloatOnes) {
  const ir::Graph graph = network();
  TensorScales scales;
  const std::vector<Tensor> batches = {batch(1), batch(2)};
  for (const char* tensor : {"x", "b", "e"})
    scales[tensor] = static_cast<float>(plain_histogram(graph, tensor, batches).largest() / kLargestLevel);
  ir::Graph quantized = graph.clone();
  PassContext context = on_cpu();
  const Result<QuantizedNetwork> network = quantize_products(quantized, scales, context);
  ASSERT_TRUE(network) << network.error().to_string();
  EXPECT_EQ(network->products, 3u);
  EXPECT_EQ(network->tensors, (std::vector<std::string>{"x", "b", "e"}));
  EXPECT_TRUE(network->unknown.empty());
  EXPECT_TRUE(is_quantized(quantized));
  EXPECT_FALSE(is_quantized(graph));
  ASSERT_TRUE(ir::verify(quantized));
  const std::vector<Tensor> got = *ir::interpret(quantized, {&batches[0], 1}),
                            want = *ir::interpret(graph, {&batches[0], 1});
  double largest = 0, difference = 0;
  for (int64_t i = 0; i < want[0].volume(); ++i) {
    largest = std::max(largest, std::fabs(want[0].at_double(i)));
    difference = std::max(difference, std::fabs(got[0].at_double(i) - want[0].at_double(i)));
  }
  EXPECT_LT(difference, 0.03 * largest);
  EXPECT_GT(difference, 0);
  // The residual is read in levels, too: nobody but the quantize node reads the tensor itself.
  EXPECT_TRUE(quantized.find_value("b")->has_single_use());
}

TEST(QuantizeProducts, LeavesProductsOfUnknownTensorsInFloats) {
  ir::Graph graph = network();
  PassContext context = on_cpu();
  const Result<QuantizedNetwork> network = quantize_products(graph, {{"b", 0.0f}, {"other", 1.0f}}, context);
  ASSERT_TRUE(network) << network.error().to_string();
  EXPECT_EQ(network->products, 0u);
  EXPECT_EQ(network->unknown, (std::vector<std::string>{"x", "b", "e"}));
  EXPECT_FALSE(is_quantized(graph));
}

TEST(QuantizeProducts, LeavesSizesAndOutputsAsTheyAre) {
  Result<ir::Graph> graph = ir::parse_graph(
      "graph g {\n  input %x: f32[n, 4]\n  %t = unary{op=exp}(%x)\n  %w = constant{value=f32[4, 4]{~1}}()\n"
      "  %y = matmul(%t, %w)\n  output %y\n  output %t\n}");
  ASSERT_TRUE(graph) << graph.error().to_string();
  PassContext context = on_cpu();
  ASSERT_EQ(quantize_products(*graph, {{"t", 0.1f}}, context)->products, 1u);
  ASSERT_TRUE(ir::verify(*graph));
  EXPECT_EQ(graph->outputs()[1].value->name(), "t");
  EXPECT_EQ(graph->outputs()[1].value->producer()->kind(), OpKind::unary);
}

}  // namespace
}  // namespace lathe
