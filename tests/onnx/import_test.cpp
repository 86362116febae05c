// SPDX-License-Identifier: Apache-2.0
// What all models have in common: names, types, versions, functions, branches, and what is said of those that are
// refused.
#include "onnx/import_fixture.h"

namespace lathe::onnx {
namespace {

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
      "node 0 (Frobnicate), operator set ai.onnx 21: Lathe has no importer for this operator, nor is plugin "
      "'Frobnicate' one of the standard ones of nvinfer_plugin (initLibNvInferPlugins()) that it has, nor has the "
      "builder's plugin registry a creator of that name, version '1', namespace ''; load the library that has it by "
      "loadLibrary() of that registry before the model is parsed, rewrite it with supported operators or define it as "
      "a "
      "model function [inputs: x: f32[2, 2]]\n"
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

// As other tools take it: the declaration may be of another batch. -1 is not a size of ONNX, but exporters write it.
TEST(OnnxImport, OutputsThatAreDeclaredOtherwiseAreWarnedOf) {
  const auto warnings = [](std::initializer_list<int64_t> declared) {
    const Imported imported =
        import(model(graph({{node("Relu", {"x"}, {"y"})}, {}, {kX}, {value_info("y", 1, declared)}})));
    EXPECT_EQ(problems(imported), "");
    return imported.report->warnings;
  };
  EXPECT_TRUE(warnings({2, 2}).empty());
  EXPECT_TRUE(warnings({2, -1}).empty());
  EXPECT_EQ(warnings({2, 3}),
            (std::vector<std::string>{"output 'y' is declared [2, 3], but its node yields [2, 2]: the "
                                      "node's dimensions hold"}));
  EXPECT_EQ(warnings({2, 2, 1})[0].substr(0, 52), "output 'y' is declared [2, 2, 1], but its node yield");
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

TEST(OnnxImport, UnreadableTypesAreNamed) {
  EXPECT_NE(problems(import(model(graph({{node("Identity", {"s"}, {"y"})}, {}, {value_info("s", 14, {1})}, {kY}}))))
                .find("input 's' has element type complex64"),
            std::string::npos);
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
