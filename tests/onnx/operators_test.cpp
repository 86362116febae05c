// SPDX-License-Identifier: Apache-2.0
// What nodes of single operators become at the version of the operator set that the model imports.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "onnx/import_fixture.h"

namespace lathe::onnx {
namespace {

TEST(OnnxOperators, SwishIsOneActivation) {
  for (const double alpha : {1.0, 2.0}) {
    const Imported imported = import(model(
        graph({{node("Swish", {"x"}, {"y"}, {real_attribute("alpha", static_cast<float>(alpha))})}, {}, {kX}, {kY}}),
        10, {opset(24)}));
    ASSERT_EQ(problems(imported), "");
    ASSERT_EQ(imported.graph.nodes().size(), 1u);
    const auto& attrs = imported.graph.nodes().front()->attrs<ActivationAttrs>();
    EXPECT_EQ(attrs.op, alpha == 1 ? ActivationOp::silu : ActivationOp::swish);
    const std::vector<float> y = evaluate(imported, {2, 2}, {-1, 0, 0.5f, 3});
    for (size_t i = 0; const double x : {-1.0, 0.0, 0.5, 3.0})
      EXPECT_FLOAT_EQ(y[i++], static_cast<float>(x / (1 + std::exp(-alpha * x))));
  }
}

TEST(OnnxOperators, LegacyDefaults) {
  // Selu-1 has rounded constants; Clip-6 has attributes.
  const Imported selu = import(model(graph({{node("Selu", {"x"}, {"y"})}, {}, {kX}, {kY}}), 3, {opset(5)}));
  EXPECT_FLOAT_EQ(evaluate(selu, {2, 2}, {1, 2, 3, 4})[0], 1.0507f);
  const Imported clip =
      import(model(graph({{node("Clip", {"x"}, {"y"}, {real_attribute("max", 2)})}, {}, {kX}, {kY}}), 3, {opset(6)}));
  EXPECT_EQ(evaluate(clip, {2, 2}, {1, -2, 3, 4}), (std::vector<float>{1, -2, 2, 2}));
  EXPECT_EQ(clip.graph.num_nodes(), 1u) << ir::to_text(clip.graph);
}

TEST(OnnxOperators, LegacyBroadcastLaysTheSecondOperandAlongTheAxis) {
  const std::string add = node("Add", {"x", "w"}, {"y"}, {int_attribute("broadcast", 1), int_attribute("axis", 0)});
  EXPECT_EQ(run_node(6, add, {2, 3}, {0, 0, 0, 0, 0, 0}, {raw_tensor<float>("w", 1, {2}, {1, 2})}),
            (std::vector<float>{1, 1, 1, 2, 2, 2}));
}

TEST(OnnxOperators, LegacySoftmaxSeesAMatrix) {
  // Axis 1 of [1, 2, 2] spans all four elements before version 13, and two since.
  const std::vector<float> old =
      run_node(11, node("Softmax", {"x"}, {"y"}, {int_attribute("axis", 1)}), {1, 2, 2}, {0, 0, 0, 0});
  EXPECT_EQ(old, std::vector<float>(4, 0.25f));
  EXPECT_EQ(run_node(11, node("Softmax", {"x"}, {"y"}), {1, 2, 2}, {0, 0, 0, 0}), old);
  EXPECT_EQ(run_node(13, node("Softmax", {"x"}, {"y"}, {int_attribute("axis", 1)}), {1, 2, 2}, {0, 0, 0, 0}),
            std::vector<float>(4, 0.5f));
}

TEST(OnnxOperators, ListsThatWereAttributes) {
  EXPECT_EQ(run_node(9,
                     node("Slice", {"x"}, {"y"},
                          {ints_attribute("starts", {1}), ints_attribute("ends", {3}), ints_attribute("axes", {1})}),
                     {1, 4}, {1, 2, 3, 4}),
            (std::vector<float>{2, 3}));
  EXPECT_EQ(
      run_node(2, node("Pad", {"x"}, {"y"}, {ints_attribute("pads", {1, 0}), real_attribute("value", 7)}), {2}, {1, 2}),
      (std::vector<float>{7, 1, 2}));
  EXPECT_EQ(run_node(1, node("Pad", {"x"}, {"y"}, {ints_attribute("paddings", {0, 1})}), {2}, {1, 2}),
            (std::vector<float>{1, 2, 0}));
  EXPECT_EQ(run_node(4, node("Reshape", {"x"}, {"y"}, {ints_attribute("shape", {-1})}), {2, 1}, {1, 2}),
            (std::vector<float>{1, 2}));
  EXPECT_EQ(run_node(9, node("TopK", {"x"}, {"y", ""}, {int_attribute("k", 1)}), {3}, {1, 3, 2}),
            (std::vector<float>{3}));
  EXPECT_EQ(run_node(11, node("ReduceSum", {"x"}, {"y"}, {ints_attribute("axes", {0})}), {2, 2}, {1, 2, 3, 4}),
            (std::vector<float>{4, 6}));
  EXPECT_EQ(run_node(7, node("Upsample", {"x"}, {"y"}, {reals_attribute("scales", {2})}), {2}, {1, 2}),
            (std::vector<float>{1, 1, 2, 2}));
  EXPECT_EQ(run_node(5, node("Tile", {"x", "n", "a"}, {"y"}), {2}, {1, 2},
                     {raw_tensor<int64_t>("n", 7, {}, {2}), raw_tensor<int64_t>("a", 7, {}, {0})}),
            (std::vector<float>{1, 2, 1, 2}));
  EXPECT_EQ(run_node(5, node("Cast", {"x"}, {"y"}, {string_attribute("to", "FLOAT")}), {2}, {1, 2}),
            (std::vector<float>{1, 2}));
}

TEST(OnnxOperators, BatchNormalizationPerElement) {
  const auto vector = [](const char* name, float a, float b) { return raw_tensor<float>(name, 1, {2}, {a, b}); };
  EXPECT_EQ(run_node(7,
                     node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"},
                          {int_attribute("spatial", 0), real_attribute("epsilon", 0)}),
                     {1, 2}, {3, 5}, {vector("s", 1, 2), vector("b", 0, 1), vector("m", 1, 1), vector("v", 4, 1)}),
            (std::vector<float>{1, 9}));
}

TEST(OnnxOperators, BidirectionalRecurrenceHonoursSequenceLengths) {
  // h' = x + h with Affine(1, 0) as activation: sums from the front, and from the back within the first length.
  const std::string activations = message([](Writer& w) {
    w.add_string(1, "activations"), w.add_string(9, "Affine"), w.add_string(9, "Affine"), w.add_int32(20, 8);
  });
  const std::string rnn =
      node("RNN", {"x", "w", "r", "", "l"}, {"y"},
           {string_attribute("direction", "bidirectional"), int_attribute("hidden_size", 1), activations,
            reals_attribute("activation_alpha", {1, 1}), reals_attribute("activation_beta", {0, 0})});
  EXPECT_EQ(run_node(14, rnn, {3, 1, 1}, {1, 10, 100},
                     {raw_tensor<float>("w", 1, {2, 1, 1}, {1, 1}), raw_tensor<float>("r", 1, {2, 1, 1}, {1, 1}),
                      raw_tensor<int32_t>("l", 6, {1}, {2})}),
            (std::vector<float>{1, 11, 11, 10, 0, 0}));
}

TEST(OnnxOperators, HiddenSizesThatOverflowAreRefused) {
  const std::string gru = node("GRU", {"x", "w", "r"}, {"y"}, {int_attribute("hidden_size", int64_t{1} << 62)});
  const std::string found = problems(
      import(model(graph({{gru},
                          {},
                          {value_info("x", 1, {3, 1, 1}), value_info("w", 1, {1, 3, 1}), value_info("r", 1, {1, 3, 1})},
                          {kY}}))));
  EXPECT_NE(found.find("hidden_size is 4611686018427387904"), std::string::npos) << found;
}

TEST(OnnxOperators, NumbersOfAttributesNeedNotFitTheTensorsType) {
  // No label is the ignored class: as an i32 it would be class 1.
  const std::string loss =
      node("NegativeLogLikelihoodLoss", {"x", "t"}, {"y"},
           {int_attribute("ignore_index", (int64_t{1} << 32) + 1), string_attribute("reduction", "none")});
  EXPECT_EQ(run_node(13, loss, {2, 2}, {1, 2, 3, 4}, {raw_tensor<int32_t>("t", 6, {2}, {1, 0})}),
            (std::vector<float>{-2, -3}));
  const Imported gemm = import(model(graph({{node("Gemm", {"a", "b"}, {"y"}, {real_attribute("alpha", 1e30F)})},
                                            {},
                                            {value_info("a", 6, {2, 2}), value_info("b", 6, {2, 2})},
                                            {value_info("y", 6, {2, 2})}})));
  EXPECT_EQ(problems(gemm), "");
  const Imported tile =
      import(model(graph({{node("Tile", {"x", "tiles", "axis"}, {"y"})},
                          {raw_tensor<float>("tiles", 1, {1}, {2}), raw_tensor<float>("axis", 1, {1}, {1e30F})},
                          {kX},
                          {kY}}),
                   3, {opset(1)}));
  EXPECT_NE(problems(tile).find("axis"), std::string::npos) << problems(tile);
}

TEST(OnnxOperators, RegionsHadNoHalfPixelsBeforeVersion16) {
  const std::string ratio = int_attribute("sampling_ratio", 1);
  const auto align = [&](int64_t version, std::initializer_list<std::string> attributes) {
    return run_node(
        version, node("RoiAlign", {"x", "regions", "images"}, {"y"}, attributes), {1, 1, 2, 2}, {0, 1, 2, 3},
        {raw_tensor<float>("regions", 1, {1, 4}, {0.5, 0.5, 1.5, 1.5}), raw_tensor<int64_t>("images", 7, {1}, {0})});
  };
  EXPECT_EQ(align(10, {ratio}), std::vector<float>{3});
  EXPECT_EQ(align(16, {ratio}), std::vector<float>{1.5});
  EXPECT_EQ(align(16, {ratio, string_attribute("coordinate_transformation_mode", "output_half_pixel")}),
            std::vector<float>{3});
  EXPECT_EQ(align(16, {ratio, string_attribute("mode", "max")}), std::vector<float>{0.75});
  const std::string unknown = node("RoiAlign", {"x", "r", "i"}, {"y"}, {string_attribute("mode", "median")});
  EXPECT_NE(
      problems(import(model(graph({{unknown}, {}, {kX, value_info("r", 1, {1, 4}), value_info("i", 7, {1})}, {kY}}), 8,
                            {opset(16)})))
          .find("mode 'median' is unknown"),
      std::string::npos);
}

TEST(OnnxOperators, ColumnsThatDoNotFitTheirImageAreRefused) {
  const auto image = raw_tensor<int64_t>("image", 7, {2}, {3, 3}), block = raw_tensor<int64_t>("block", 7, {2}, {2, 2});
  const std::string fold = node("Col2Im", {"x", "image", "block"}, {"y"});
  const GraphParts parts{{fold}, {image, block}, {value_info("x", 1, {1, 4, 5})}, {kY}};
  const std::string problem = problems(import(model(graph(parts), 8, {opset(18)})));
  EXPECT_NE(problem.find("5 columns, but a block of shape [2, 2] has 4 positions [2, 2]"), std::string::npos)
      << problem;
}

TEST(OnnxOperators, RandomNumbersFollowTheirSeeds) {
  const auto draw = [&](const char* op, std::initializer_list<std::string> attributes) {
    return run_node(15, node(op, {"x"}, {"y"}, attributes), {1000}, std::vector<float>(1000, 0.25f));
  };
  const auto mean = [](const std::vector<float>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  const auto seed = [](float value) { return real_attribute("seed", value); };
  EXPECT_EQ(draw("RandomUniformLike", {seed(1)}), draw("RandomUniformLike", {seed(1)}));
  EXPECT_NE(draw("RandomUniformLike", {seed(1)}), draw("RandomUniformLike", {seed(1.5)}));
  EXPECT_NE(draw("RandomUniformLike", {}), draw("RandomUniformLike", {}));
  EXPECT_NEAR(mean(draw("RandomUniformLike", {real_attribute("low", 2), real_attribute("high", 4)})), 3, 0.1);
  EXPECT_NEAR(mean(draw("RandomNormalLike", {real_attribute("mean", -7), seed(3)})), -7, 0.2);
  const std::vector<float> drawn = draw("Bernoulli", {seed(4)});
  EXPECT_NEAR(mean(drawn), 0.25, 0.05);
  for (const float value : drawn) EXPECT_TRUE(value == 0 || value == 1);
}

// Classes of probability 1/4, 0 and 3/4.
TEST(OnnxOperators, MultinomialDrawsClassesByTheirLogarithms) {
  const std::string body =
      node("Multinomial", {"x"}, {"i"}, {int_attribute("sample_size", 2000), real_attribute("seed", 2)});
  const std::string cast = node("Cast", {"i"}, {"y"}, {int_attribute("to", 1)});
  const std::string input = value_info("x", 1, {1, 3});
  const std::vector<float> drawn = evaluate(import(model(graph({{body, cast}, {}, {input}, {kY}}), 8, {opset(15)})),
                                            {1, 3}, {1, -INFINITY, 1 + std::log(3.0f)});
  ASSERT_EQ(drawn.size(), 2000u);
  EXPECT_NEAR(std::count(drawn.begin(), drawn.end(), 0.0f), 500, 70);
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), 1.0f), 0);
  EXPECT_NEAR(std::count(drawn.begin(), drawn.end(), 2.0f), 1500, 70);
}

TEST(OnnxOperators, FloatsAreNotDequantised) {
  for (const int scale : {1, 10}) {  // f32, f16
    const std::string problem = problems(import(model(graph({{node("DequantizeLinear", {"x", "s"}, {"y"})},
                                                             {},
                                                             {value_info("x", 1, {2}), value_info("s", scale, {})},
                                                             {value_info("y", scale, {2})}}),
                                                      10, {opset(21)})));
    EXPECT_NE(problem.find("DequantizeLinear"), std::string::npos) << problem;
    EXPECT_NE(problem.find("x has type f32"), std::string::npos) << problem;
  }
}

TEST(OnnxOperators, BoxesThatDoNotFitTheirScoresAreNamed) {
  const std::string suppress = node("NonMaxSuppression", {"boxes", "scores"}, {"y"});
  const std::string problem =
      problems(import(model(graph({{suppress},
                                   {},
                                   {value_info("boxes", 1, {1, 5, 4}), value_info("scores", 1, {1, 2, 6})},
                                   {value_info("y", 7, {-1, 3})}}),
                            8, {opset(11)})));
  EXPECT_NE(problem.find("NonMaxSuppression"), std::string::npos) << problem;
  EXPECT_NE(problem.find("[1, 5, 4] and scores [1, 2, 6]"), std::string::npos) << problem;
}

}  // namespace
}  // namespace lathe::onnx
