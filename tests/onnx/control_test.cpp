// SPDX-License-Identifier: Apache-2.0
// Loop, Scan and If that become loops and branches of the graph.
#include "onnx/import_fixture.h"

namespace lathe::onnx {
namespace {

const std::string kOpen = value_info("x", 1, {-1, 2});
const std::string kRound = value_info("i", 7, {}), kGoesOn = value_info("c", 9, {});

int count_of(const Imported& imported, OpKind kind) {
  int count = 0;
  for (const auto& node : imported.graph.nodes()) count += node->is(kind);
  return count;
}

Imported import_nodes(std::vector<std::string> nodes, std::vector<std::string> initializers = {}) {
  return import(model(graph({std::move(nodes), std::move(initializers), {kOpen}, {value_info("y", 1, {-1, 2})}})));
}

// v + x in each of five rounds: x is captured.
TEST(OnnxControl, LoopsCaptureWhatIsAround) {
  const std::string body = graph({{node("Add", {"v", "x"}, {"w"}), node("Identity", {"c"}, {"d"})},
                                  {},
                                  {kRound, kGoesOn, value_info("v", 1, {-1, 2})},
                                  {value_info("d", 9, {}), value_info("w", 1, {-1, 2})}});
  const Imported imported = import_nodes({node("Loop", {"n", "", "x"}, {"y"}, {graph_attribute("body", body)})},
                                         {raw_tensor<int64_t>("n", 7, {}, {5})});
  EXPECT_EQ(evaluate(imported, {2, 2}, {1, 2, 3, 4}), (std::vector<float>{6, 12, 18, 24}));
  EXPECT_EQ(count_of(imported, OpKind::loop), 1);
}

// Rows are added until there are more than the condition allows: importers inside see that they grow.
TEST(OnnxControl, CarriedValuesMayGrow) {
  const std::string body =
      graph({{node("Concat", {"v", "x"}, {"w"}, {int_attribute("axis", 0)}), node("Shape", {"w"}, {"s"}),
              node("Gather", {"s", "zero"}, {"rows"}), node("Less", {"rows", "most"}, {"d"})},
             {raw_tensor<int64_t>("zero", 7, {}, {0}), raw_tensor<int64_t>("most", 7, {}, {5})},
             {kRound, kGoesOn, value_info("v", 1, {-1, 2})},
             {value_info("d", 9, {}), value_info("w", 1, {-1, 2})}});
  const Imported imported = import_nodes({node("Loop", {"", "first", "x"}, {"y"}, {graph_attribute("body", body)})},
                                         {raw_tensor<uint8_t>("first", 9, {}, {1})});
  EXPECT_EQ(evaluate(imported, {2, 2}, {1, 2, 3, 4}), (std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}));
}

// Sums of rows from the last to the first; the number of rows is open.
TEST(OnnxControl, ScansOfAnyLength) {
  const std::string body = graph({{node("Add", {"sum", "row"}, {"next"}), node("Identity", {"next"}, {"out"})},
                                  {},
                                  {value_info("sum", 1, {2}), value_info("row", 1, {2})},
                                  {value_info("next", 1, {2}), value_info("out", 1, {2})}});
  const Imported imported = import_nodes(
      {node("Scan", {"start", "x"}, {"last", "y"},
            {graph_attribute("body", body), int_attribute("num_scan_inputs", 1),
             ints_attribute("scan_input_directions", {1}), ints_attribute("scan_output_directions", {1})})},
      {raw_tensor<float>("start", 1, {2}, {10, 20})});
  EXPECT_EQ(evaluate(imported, {3, 2}, {1, 2, 3, 4, 5, 6}), (std::vector<float>{19, 32, 18, 30, 15, 26}));
  EXPECT_EQ(count_of(imported, OpKind::loop), 1);
}

// What is worth it is a branch, of which one body is run; both read x and one weights of its own.
TEST(OnnxControl, HeavyBranches) {
  const std::string yes = graph({{node("MatMul", {"x", "m"}, {"t"})},
                                 {raw_tensor<float>("m", 1, {2, 2}, {0, 1, 1, 0})},
                                 {},
                                 {value_info("t", 1, {-1, 2})}});
  const std::string no = graph({{node("Mul", {"x", "total"}, {"t"})}, {}, {}, {value_info("t", 1, {-1, 2})}});
  const Imported imported = import_nodes(
      {node("ReduceSum", {"x"}, {"total"}, {int_attribute("keepdims", 0)}), node("Greater", {"total", "zero"}, {"c"}),
       node("If", {"c"}, {"y"}, {graph_attribute("then_branch", yes), graph_attribute("else_branch", no)})},
      {raw_tensor<float>("zero", 1, {}, {0})});
  EXPECT_EQ(count_of(imported, OpKind::branch), 1);
  EXPECT_EQ(evaluate(imported, {1, 2}, {1, 2}), (std::vector<float>{2, 1}));
  EXPECT_EQ(evaluate(imported, {1, 2}, {1, -2}), (std::vector<float>{-1, 2}));
}

// A loop in a branch in a loop, which reads the outermost x.
TEST(OnnxControl, BodiesNest) {
  const std::string innermost = graph({{node("Add", {"u", "x"}, {"u2"}), node("Identity", {"c3"}, {"d3"})},
                                       {},
                                       {value_info("k", 7, {}), value_info("c3", 9, {}), value_info("u", 1, {-1, 2})},
                                       {value_info("d3", 9, {}), value_info("u2", 1, {-1, 2})}});
  const std::string yes = graph({{node("Loop", {"two", "", "v"}, {"t"}, {graph_attribute("body", innermost)})},
                                 {raw_tensor<int64_t>("two", 7, {}, {2})},
                                 {},
                                 {value_info("t", 1, {-1, 2})}});
  const std::string no = graph({{node("Neg", {"v"}, {"t"})}, {}, {}, {value_info("t", 1, {-1, 2})}});
  const std::string body =
      graph({{node("Equal", {"i", "one"}, {"is_one"}),
              node("If", {"is_one"}, {"w"}, {graph_attribute("then_branch", yes), graph_attribute("else_branch", no)}),
              node("Identity", {"c"}, {"d"})},
             {raw_tensor<int64_t>("one", 7, {}, {1})},
             {kRound, kGoesOn, value_info("v", 1, {-1, 2})},
             {value_info("d", 9, {}), value_info("w", 1, {-1, 2})}});
  const Imported imported = import_nodes({node("Loop", {"n", "", "x"}, {"y"}, {graph_attribute("body", body)})},
                                         {raw_tensor<int64_t>("n", 7, {}, {3})});
  EXPECT_EQ(evaluate(imported, {1, 2}, {1, 5}), (std::vector<float>{-1, -5}));  // -x, + 2x, negated
}

TEST(OnnxControl, ErrorsNameTheLoop) {
  const std::string body = graph({{node("Transpose", {"v"}, {"w"}, {ints_attribute("perm", {1, 0})}),
                                   node("Unsqueeze", {"w", "zero"}, {"z"}), node("Identity", {"c"}, {"d"})},
                                  {raw_tensor<int64_t>("zero", 7, {1}, {0})},
                                  {kRound, kGoesOn, value_info("v", 1, {-1, 2})},
                                  {value_info("d", 9, {}), value_info("z", 1, {})}});
  const auto text = problems(import_nodes({node("Loop", {"n", "", "x"}, {"y"}, {graph_attribute("body", body)})},
                                          {raw_tensor<int64_t>("n", 7, {}, {5})}));
  EXPECT_NE(text.find("number of dimensions must stay"), std::string::npos) << text;
  const auto endless = problems(import_nodes({node("Loop", {"", "", "x"}, {"y"}, {graph_attribute("body", body)})}));
  EXPECT_NE(endless.find("neither a trip count nor a condition"), std::string::npos) << endless;
}

}  // namespace
}  // namespace lathe::onnx
