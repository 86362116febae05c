// SPDX-License-Identifier: Apache-2.0
#include "onnx/checker.h"

#include <gtest/gtest.h>

#include "onnx/model_bytes.h"

namespace lathe::onnx {
namespace {

// Messages of all faults, one a line.
std::string faults(const std::string& bytes) {
  const auto model = read_model(bytes_of(bytes));
  if (!model) return "unreadable: " + model.error().message;
  const auto checked = check_model(*model);
  if (checked) return "";
  if (checked.error().notes.empty()) return checked.error().message + "\n";
  std::string text;
  for (const Error& note : checked.error().notes) text += note.message + "\n";
  return text;
}

const std::string kInput = value_info("x", 1, {2});
const std::string kOutput = value_info("y", 1, {2});

TEST(OnnxChecker, AcceptsAGoodModel) { EXPECT_EQ(faults(small_model()), ""); }

TEST(OnnxChecker, ReportsEveryFaultAtOnce) {
  const std::string text = faults(model(graph({{node("Add", {"x", "nowhere"}, {"a"}), node("Relu", {"a"}, {"a"}),
                                                node("", {"x"}, {"b"}), node("Foo", {"x"}, {"c"}, {}, "my.domain")},
                                               {},
                                               {kInput, kInput},
                                               {kOutput}})));
  EXPECT_EQ(text,
            "graph input 'x' occurs twice\n"
            "node 0 (Add): its input 'nowhere' is not defined by a graph input, an initializer or a node\n"
            "node 1 (Relu): its output 'a' is already defined; every value must be produced once\n"
            "node 2 (): it has no op_type\n"
            "node 3 (Foo): operator set 'my.domain' is not imported\n"
            "graph output 'y' is produced by no node\n");
}

TEST(OnnxChecker, OrderAndCycles) {
  EXPECT_EQ(faults(model(graph({{node("Relu", {"a"}, {"y"}), node("Relu", {"x"}, {"a"})}, {}, {kInput}, {kOutput}}))),
            "node 0 (Relu): its input 'a' is produced later, by node 1 (Relu); nodes must be in topological order\n");
  EXPECT_EQ(
      faults(model(graph({{node("Add", {"x", "b"}, {"a"}), node("Relu", {"a"}, {"b"}), node("Relu", {"x"}, {"y"})},
                          {},
                          {kInput},
                          {kOutput}}))),
      "node 0 (Add): it is part of a cycle, or depends on one\nnode 1 (Relu): it is part of a cycle, or depends on "
      "one\n");
}

TEST(OnnxChecker, Versions) {
  const std::string good = graph({{node("Relu", {"x"}, {"y"})}, {}, {kInput}, {kOutput}});
  EXPECT_EQ(faults(model(good, 13, {opset(27)})), "");
  EXPECT_NE(faults(model(good, 14)).find("IR version 14 is not supported"), std::string::npos);
  EXPECT_NE(faults(model(good, 2)).find("IR version 2 is not supported"), std::string::npos);
  EXPECT_NE(faults(model(good, 10, {opset(28)})).find("ai.onnx version 28"), std::string::npos);
  EXPECT_NE(faults(model(good, 10, {})).find("imports no operator set"), std::string::npos);
  EXPECT_NE(faults(model(good, 10, {opset(9), opset(10, "ai.onnx")})).find("imported in versions 9 and 10"),
            std::string::npos);
}

TEST(OnnxChecker, Initializers) {
  const std::string w = raw_tensor<float>("w", 1, {2}, {1, 2});
  const GraphParts parts{{node("Add", {"x", "w"}, {"y"})}, {w}, {kInput}, {kOutput}};
  EXPECT_EQ(faults(model(graph(parts), 4)), "");
  EXPECT_NE(faults(model(graph(parts), 3)).find("'w' is not a graph input, which IR version 3 demands"),
            std::string::npos);
  EXPECT_EQ(faults(model(graph({parts.nodes, {w, w}, {kInput}, {kOutput}}))), "initializer 'w' occurs twice\n");
}

TEST(OnnxChecker, SubgraphsSeeOuterNamesOnly) {
  const std::string c = value_info("c", 9, {});
  const std::string branch = graph({{node("Add", {"x", "late"}, {"t"})}, {}, {}, {value_info("t", 1, {2})}});
  EXPECT_EQ(faults(model(graph(
                {{node("If", {"c"}, {"y"}, {graph_attribute("then_branch", branch)}), node("Relu", {"x"}, {"late"})},
                 {},
                 {kInput, c},
                 {kOutput}}))),
            "node 0 (If), graph 'then_branch': node 0 (Add): its input 'late' is not defined by a graph input, an "
            "initializer or a node\n");
}

TEST(OnnxChecker, Attributes) {
  const std::string odd = message([](Writer& w) { w.add_string(1, "a"), w.add_int32(20, 77); });
  const std::string reference =
      message([](Writer& w) { w.add_string(1, "b"), w.add_string(21, "outer"), w.add_int32(20, 2); });
  EXPECT_EQ(faults(model(graph({{node("Relu", {"x"}, {"y"}, {odd, odd, reference})}, {}, {kInput}, {kOutput}}))),
            "node 0 (Relu): attribute 'a' has unknown type 77\n"
            "node 0 (Relu): attribute 'a' occurs twice\n"
            "node 0 (Relu): attribute 'a' has unknown type 77\n"
            "node 0 (Relu): attribute 'b' refers to 'outer', which only a function body may\n");
}

TEST(OnnxChecker, FunctionsMustNotRecurse) {
  const auto function = [](const char* name, const char* callee) {
    return message([&](Writer& w) {
      w.add_string(1, name), w.add_string(4, "x"), w.add_string(5, "y"), w.add_string(10, "f");
      w.add_message(7, node(callee, {"x"}, {"y"}, {}, "f"));
      w.add_message(9, opset(1, "f"));
    });
  };
  const std::string main = graph({{node("A", {"x"}, {"y"}, {}, "f")}, {}, {kInput}, {kOutput}});
  const std::vector<std::string> opsets{opset(21), opset(1, "f")};
  EXPECT_EQ(faults(model(main, 10, opsets, {function("A", "B"), function("B", "Other")})), "");
  EXPECT_EQ(faults(model(main, 10, opsets, {function("A", "B"), function("B", "A")})),
            "function 'f::A' calls itself, or one that does\nfunction 'f::B' calls itself, or one that does\n");
}

}  // namespace
}  // namespace lathe::onnx
