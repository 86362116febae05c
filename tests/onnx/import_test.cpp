// SPDX-License-Identifier: Apache-2.0
#include "onnx/import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/interpret.h"
#include "onnx/model_bytes.h"

namespace lathe::onnx {
namespace {

struct Imported {
  Result<ImportReport> report = fail(ErrorCode::internal, "not read");
  ir::Graph graph;
};

Imported import(const std::string& bytes, const ImportOptions& options = {}) {
  Imported result;
  Result<Model> model = read_model(bytes_of(bytes));
  if (model)
    result.report = import_model(*model, result.graph, options);
  else
    result.report = fail(model.error());
  return result;
}

std::string problems(const Imported& imported) {
  if (imported.report) return "";
  if (imported.report.error().notes.empty()) return imported.report.error().message + "\n";
  std::string text;
  for (const Error& note : imported.report.error().notes) text += note.message + "\n";
  return text;
}

// The single f32 output for one f32 input.
std::vector<float> evaluate(const Imported& imported, Dims dims, std::vector<float> x) {
  EXPECT_EQ(problems(imported), "");
  if (!imported.report) return {};
  const Tensor input = Tensor::from<float>(std::move(dims), x);
  const auto outputs = ir::interpret(imported.graph, std::span(&input, 1));
  EXPECT_TRUE(outputs) << outputs.error().to_string();
  if (!outputs) return {};
  return {(*outputs)[0].as<float>(), (*outputs)[0].as<float>() + (*outputs)[0].volume()};
}

std::string real_attribute(const char* name, float value) {
  return message([&](Writer& w) { w.add_string(1, name), w.add_float(2, value), w.add_int32(20, 1); });
}

std::string reference_attribute(const char* name, const char* to, int type) {
  return message([&](Writer& w) { w.add_string(1, name), w.add_string(21, to), w.add_int32(20, type); });
}

const std::string kX = value_info("x", 1, {2, 2});
const std::string kY = value_info("y", 1, {2, 2});

TEST(OnnxImport, EveryProblemIsReportedOnceWithItsTensors) {
  const Imported imported = import(model(graph({{node("Frobnicate", {"x"}, {"a"}), node("Relu", {"a"}, {"b"}),
                                                 node("Relu", {"x"}, {"c"}, {int_attribute("slope", 1)}),
                                                 node("Mod", {"x", "x"}, {"d"}), node("Add", {"b", "d"}, {"y"})},
                                                {},
                                                {kX},
                                                {kY}}),
                                         10, {opset(21)}));
  EXPECT_EQ(
      problems(imported),
      "node 0 (Frobnicate), operator set ai.onnx 21: Lathe has no importer for this operator; rewrite it with "
      "supported "
      "operators or define it as a model function [inputs: x: f32[2, 2]]\n"
      "node 2 (Relu), operator set ai.onnx 21: attribute 'slope' is unknown; it does not exist at this version of the "
      "operator [inputs: x: f32[2, 2]]\n"
      "node 3 (Mod), operator set ai.onnx 21: floating operands need fmod=1 [inputs: x: f32[2, 2], x: f32[2, 2]]\n");
}

// A node's name may be its tensor's: the values that the operator is made of do not take it.
TEST(OnnxImport, TensorsKeepTheirNames) {
  const std::string named = node("Gemm", {"x", "w", "b"}, {"y"}, {real_attribute("beta", 2)}) +
                            message([](Writer& w) { w.add_string(3, "y"); });
  const Imported imported =
      import(model(graph({{named},
                          {raw_tensor<float>("w", 1, {2, 2}, {1, 2, 3, 4}), raw_tensor<float>("b", 1, {2}, {5, 6})},
                          {kX},
                          {kY}})));
  ASSERT_EQ(problems(imported), "");
  EXPECT_EQ(imported.graph.outputs()[0].value->name(), "y");
  EXPECT_EQ(evaluate(imported, {2, 2}, {1, 0, 0, 1}), (std::vector<float>{11, 14, 13, 16}));
}

TEST(OnnxImport, SwishIsOneActivation) {
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

TEST(OnnxImport, SupportIsToldPerNode) {
  const std::string bytes = model(graph({{node("Relu", {"x"}, {"a"}), node("Mean", {"a", "a"}, {"b"}),
                                          node("Frobnicate", {"b"}, {"c"}), node("Relu", {"c"}, {"y"})},
                                         {},
                                         {kX},
                                         {kY}}),
                                  10, {opset(24)});
  const auto model = read_model(bytes_of(bytes));
  ASSERT_TRUE(model);
  const auto report = query_support(*model);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->nodes.size(), 4u);
  EXPECT_EQ(report->nodes[0].support, Support::native);
  EXPECT_EQ(report->nodes[1].support, Support::generic);
  EXPECT_EQ(report->nodes[2].support, Support::unsupported);
  EXPECT_NE(report->nodes[2].reason.find("no importer"), std::string::npos);
  EXPECT_EQ(report->nodes[3].support, Support::blocked);
}

TEST(OnnxImport, VersionsOutsideAnOperatorsLifeAreNamed) {
  EXPECT_NE(problems(import(model(graph({{node("Erf", {"x"}, {"y"})}, {}, {kX}, {kY}}), 8, {opset(8)})))
                .find("exists from version 9 on"),
            std::string::npos);
  EXPECT_NE(problems(import(model(graph({{node("Upsample", {"x", "x"}, {"y"})}, {}, {kX}, {kY}}), 8, {opset(10)})))
                .find("removed from the operator set after version 9"),
            std::string::npos);
}

TEST(OnnxImport, InitializersThatAreInputsBecomeConstants) {
  const std::string w = raw_tensor<float>("w", 1, {2}, {10, 20});
  const Imported imported = import(model(graph({{node("Add", {"x", "w"}, {"y"}, {int_attribute("broadcast", 1)})},
                                                {w},
                                                {kX, value_info("w", 1, {2})},
                                                {kY}}),
                                         3, {opset(6)}));
  EXPECT_EQ(imported.graph.inputs().size(), 1u);
  EXPECT_EQ(evaluate(imported, {2, 2}, {1, 2, 3, 4}), (std::vector<float>{11, 22, 13, 24}));
}

TEST(OnnxImport, SymbolicDimsAreSharedByName) {
  const auto named = [](const char* name) {
    const std::string shape = message([](Writer& w) {
      w.add_message(1, message([](Writer& d) { d.add_string(2, "batch"); }));
      w.add_message(1, std::string());
    });
    const std::string tensor = message([&](Writer& w) { w.add_int32(1, 1), w.add_message(2, shape); });
    return message([&](Writer& w) {
      w.add_string(1, name), w.add_message(2, message([&](Writer& t) { t.add_message(1, tensor); }));
    });
  };
  const std::string bytes = model(graph({{node("Relu", {"a"}, {"y"})}, {}, {named("a"), named("b")}, {kY}}));
  const Imported imported = import(bytes);
  ASSERT_EQ(problems(imported), "");
  const auto& inputs = imported.graph.inputs();
  EXPECT_EQ(inputs[0]->shape()[0], inputs[1]->shape()[0]);
  EXPECT_FALSE(inputs[0]->shape()[1] == inputs[1]->shape()[1]);
  const Imported fixed = import(bytes, {{{"a", {4, 5}}}});
  EXPECT_EQ(as_constant(fixed.graph.inputs()[0]->shape()), (Dims{4, 5}));
}

TEST(OnnxImport, FunctionsAreInlinedWithTheirAttributes) {
  const std::string function = message([](Writer& w) {
    w.add_string(1, "Twice"), w.add_string(4, "a"), w.add_string(5, "b"), w.add_string(6, "slope"),
        w.add_string(10, "f");
    w.add_message(11, real_attribute("second", 0.5f));
    w.add_message(7, node("LeakyRelu", {"a"}, {"t"}, {reference_attribute("alpha", "slope", 1)}));
    w.add_message(7, node("LeakyRelu", {"t"}, {"b"}, {reference_attribute("alpha", "second", 1)}));
    w.add_message(9, opset(16));
  });
  const std::vector<std::string> opsets{opset(21), opset(1, "f")};
  const auto call = [&](std::initializer_list<std::string> attributes) {
    return import(
        model(graph({{node("Twice", {"x"}, {"y"}, attributes, "f")}, {}, {kX}, {kY}}), 10, opsets, {function}));
  };
  EXPECT_EQ(evaluate(call({real_attribute("slope", 0.25f)}), {2, 2}, {1, -8, 0, -16}),
            (std::vector<float>{1, -1, 0, -2}));
  EXPECT_EQ(evaluate(call({real_attribute("slope", 0.5f), real_attribute("second", 2)}), {2, 2}, {1, -8, 0, -16}),
            (std::vector<float>{1, -8, 0, -16}));
  // Unbound: the operator's own default, 0.01.
  EXPECT_FLOAT_EQ(evaluate(call({}), {2, 2}, {1, -8, 0, -16})[1], -0.04f);
}

TEST(OnnxImport, LegacyDefaults) {
  // Selu-1 has rounded constants; Clip-6 has attributes.
  const Imported selu = import(model(graph({{node("Selu", {"x"}, {"y"})}, {}, {kX}, {kY}}), 3, {opset(5)}));
  EXPECT_FLOAT_EQ(evaluate(selu, {2, 2}, {1, 2, 3, 4})[0], 1.0507f);
  const Imported clip =
      import(model(graph({{node("Clip", {"x"}, {"y"}, {real_attribute("max", 2)})}, {}, {kX}, {kY}}), 3, {opset(6)}));
  EXPECT_EQ(evaluate(clip, {2, 2}, {1, -2, 3, 4}), (std::vector<float>{1, -2, 2, 2}));
  EXPECT_EQ(clip.graph.num_nodes(), 1u) << ir::to_text(clip.graph);
}

// One node over x of these dims, at this version of the operator set; the output's declared dims do not matter.
std::vector<float> run_node(int64_t version, const std::string& node, Dims dims, std::vector<float> x,
                            std::vector<std::string> initializers = {}) {
  const std::string input = message([&](Writer& w) {
    const std::string shape = message([&](Writer& s) {
      for (const int64_t dim : dims) s.add_message(1, message([&](Writer& d) { d.add_int64(1, dim); }));
    });
    const std::string tensor = message([&](Writer& t) { t.add_int32(1, 1), t.add_message(2, shape); });
    w.add_string(1, "x"), w.add_message(2, message([&](Writer& t) { t.add_message(1, tensor); }));
  });
  return evaluate(import(model(graph({{node}, std::move(initializers), {input}, {kY}}), 8, {opset(version)})), dims,
                  std::move(x));
}

std::string string_attribute(const char* name, const char* value) {
  return message([&](Writer& w) { w.add_string(1, name), w.add_string(4, value), w.add_int32(20, 3); });
}

std::string reals_attribute(const char* name, std::vector<float> values) {
  return message([&](Writer& w) {
    w.add_string(1, name), w.add_packed_float(7, values.begin(), values.end()), w.add_int32(20, 6);
  });
}

TEST(OnnxImport, LegacyBroadcastLaysTheSecondOperandAlongTheAxis) {
  const std::string add = node("Add", {"x", "w"}, {"y"}, {int_attribute("broadcast", 1), int_attribute("axis", 0)});
  EXPECT_EQ(run_node(6, add, {2, 3}, {0, 0, 0, 0, 0, 0}, {raw_tensor<float>("w", 1, {2}, {1, 2})}),
            (std::vector<float>{1, 1, 1, 2, 2, 2}));
}

TEST(OnnxImport, LegacySoftmaxSeesAMatrix) {
  // Axis 1 of [1, 2, 2] spans all four elements before version 13, and two since.
  const std::vector<float> old =
      run_node(11, node("Softmax", {"x"}, {"y"}, {int_attribute("axis", 1)}), {1, 2, 2}, {0, 0, 0, 0});
  EXPECT_EQ(old, std::vector<float>(4, 0.25f));
  EXPECT_EQ(run_node(11, node("Softmax", {"x"}, {"y"}), {1, 2, 2}, {0, 0, 0, 0}), old);
  EXPECT_EQ(run_node(13, node("Softmax", {"x"}, {"y"}, {int_attribute("axis", 1)}), {1, 2, 2}, {0, 0, 0, 0}),
            std::vector<float>(4, 0.5f));
}

TEST(OnnxImport, ListsThatWereAttributes) {
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

TEST(OnnxImport, BatchNormalizationPerElement) {
  const auto vector = [](const char* name, float a, float b) { return raw_tensor<float>(name, 1, {2}, {a, b}); };
  EXPECT_EQ(run_node(7,
                     node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"},
                          {int_attribute("spatial", 0), real_attribute("epsilon", 0)}),
                     {1, 2}, {3, 5}, {vector("s", 1, 2), vector("b", 0, 1), vector("m", 1, 1), vector("v", 4, 1)}),
            (std::vector<float>{1, 9}));
}

TEST(OnnxImport, BranchesAreChosenWhileImportingOrSelected) {
  const auto branch = [](const char* op) {
    return graph({{node(op, {"x"}, {"t"})}, {}, {}, {value_info("t", 1, {2, 2})}});
  };
  const std::string choose =
      node("If", {"c"}, {"y"},
           {graph_attribute("then_branch", branch("Neg")), graph_attribute("else_branch", branch("Abs"))});
  EXPECT_EQ(run_node(13, choose, {2}, {1, -2}, {raw_tensor<uint8_t>("c", 9, {}, {1})}), (std::vector<float>{-1, 2}));
  EXPECT_EQ(run_node(13, choose, {2}, {1, -2}, {raw_tensor<uint8_t>("c", 9, {}, {0})}), (std::vector<float>{1, 2}));
  const Imported both = import(model(graph({{choose}, {}, {kX, value_info("c", 9, {})}, {kY}})));
  EXPECT_EQ(problems(both), "");
}

// A condition on open sizes that all sizes fulfil: the other branch, of another type, never was one.
TEST(OnnxImport, BranchesAreChosenForAllSizes) {
  const auto branch = [](const char* op, int type) {
    return graph({{node(op, {"x"}, {"t"})}, {}, {}, {value_info("t", type, {-1})}});
  };
  const std::string choose =
      node("If", {"c"}, {"y"},
           {graph_attribute("then_branch", branch("Shape", 7)), graph_attribute("else_branch", branch("Abs", 1))});
  const Imported found = import(model(graph({{node("Shape", {"x"}, {"s"}), node("Gather", {"s", "first"}, {"n"}),
                                              node("Equal", {"n", "n"}, {"e"}), node("Not", {"e"}, {"c"}), choose},
                                             {raw_tensor<int64_t>("first", 7, {}, {0})},
                                             {value_info("x", 1, {-1, 2})},
                                             {value_info("y", 1, {-1, 2})}})));
  EXPECT_EQ(problems(found), "");
}

TEST(OnnxImport, BidirectionalRecurrenceHonoursSequenceLengths) {
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

TEST(OnnxImport, HiddenSizesThatOverflowAreRefused) {
  const std::string gru = node("GRU", {"x", "w", "r"}, {"y"}, {int_attribute("hidden_size", int64_t{1} << 62)});
  const std::string found = problems(
      import(model(graph({{gru},
                          {},
                          {value_info("x", 1, {3, 1, 1}), value_info("w", 1, {1, 3, 1}), value_info("r", 1, {1, 3, 1})},
                          {kY}}))));
  EXPECT_NE(found.find("hidden_size is 4611686018427387904"), std::string::npos) << found;
}

TEST(OnnxImport, UnreadableTypesAreNamed) {
  EXPECT_NE(problems(import(model(graph({{node("Identity", {"s"}, {"y"})}, {}, {value_info("s", 8, {1})}, {kY}}))))
                .find("input 's' has element type string"),
            std::string::npos);
}

TEST(OnnxImport, NumbersOfAttributesNeedNotFitTheTensorsType) {
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

TEST(OnnxImport, RegionsHadNoHalfPixelsBeforeVersion16) {
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

TEST(OnnxImport, ColumnsThatDoNotFitTheirImageAreRefused) {
  const auto image = raw_tensor<int64_t>("image", 7, {2}, {3, 3}), block = raw_tensor<int64_t>("block", 7, {2}, {2, 2});
  const std::string fold = node("Col2Im", {"x", "image", "block"}, {"y"});
  const GraphParts parts{{fold}, {image, block}, {value_info("x", 1, {1, 4, 5})}, {kY}};
  const std::string problem = problems(import(model(graph(parts), 8, {opset(18)})));
  EXPECT_NE(problem.find("5 columns, but a block of shape [2, 2] has 4 positions [2, 2]"), std::string::npos)
      << problem;
}

TEST(OnnxImport, RandomNumbersFollowTheirSeeds) {
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
TEST(OnnxImport, MultinomialDrawsClassesByTheirLogarithms) {
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

TEST(OnnxImport, BoxesThatDoNotFitTheirScoresAreNamed) {
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

TEST(OnnxImport, FunctionsThatExplodeAreStopped) {
  std::vector<std::string> functions;
  for (int i = 0; i < 40; ++i)  // two calls each, 40 deep: 2^40 nodes
    functions.push_back(message([&](Writer& w) {
      const std::string callee = i == 39 ? "Relu" : fmt::format("F{}", i + 1);
      const char* domain = i == 39 ? "" : "f";
      w.add_string(1, fmt::format("F{}", i)), w.add_string(4, "a"), w.add_string(5, "c"), w.add_string(10, "f");
      w.add_message(7, node(callee, {"a"}, {"b"}, {}, domain)),
          w.add_message(7, node(callee, {"b"}, {"c"}, {}, domain));
      w.add_message(9, opset(16)), w.add_message(9, opset(1, "f"));
    }));
  const Imported imported = import(
      model(graph({{node("F0", {"x"}, {"y"}, {}, "f")}, {}, {kX}, {kY}}), 10, {opset(21), opset(1, "f")}, functions));
  ASSERT_FALSE(imported.report);
  EXPECT_NE(problems(imported).find("too deeply or too often"), std::string::npos);
}

}  // namespace
}  // namespace lathe::onnx
