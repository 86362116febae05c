// SPDX-License-Identifier: Apache-2.0
// Sequences and optionals: what they compute, and what is refused.
#include "onnx/import_fixture.h"

namespace lathe::onnx {
namespace {

using Floats = std::vector<float>;

const std::string kRows = value_info("x", 1, {3, 2});
const std::string kEvery = value_info("y", 1, {-1});

std::string integer(const char* name, int64_t value) { return raw_tensor<int64_t>(name, 7, {}, {value}); }

// A value whose type is a sequence (field 4) or an optional (field 9) of float tensors.
std::string float_value(const char* name, uint32_t kind) {
  const std::string tensor = message([](Writer& w) { w.add_int32(1, 1); });
  const std::string inner = message([&](Writer& w) { w.add_message(1, tensor); });
  const std::string holder = message([&](Writer& w) { w.add_message(1, inner); });
  const std::string type = message([&](Writer& w) { w.add_message(kind, holder); });
  return message([&](Writer& w) { w.add_string(1, name), w.add_message(2, type); });
}

constexpr uint32_t kSequence = 4, kOptional = 9;

std::string empty_optional(const char* output) {
  const std::string tensor = message([](Writer& w) { w.add_int32(1, 1); });
  const std::string type = message([&](Writer& w) { w.add_message(1, tensor); });
  const std::string attribute =
      message([&](Writer& w) { w.add_string(1, "type"), w.add_message(14, type), w.add_int32(20, 13); });
  return node("Optional", {}, {output}, {attribute});
}

Imported import_rows(std::vector<std::string> nodes, std::vector<std::string> initializers = {},
                     std::vector<std::string> outputs = {kEvery}, std::vector<std::string> more_inputs = {}) {
  std::vector<std::string> inputs = {kRows};
  inputs.insert(inputs.end(), more_inputs.begin(), more_inputs.end());
  return import(model(graph({std::move(nodes), std::move(initializers), std::move(inputs), std::move(outputs)})));
}

Floats run(const Imported& imported) { return evaluate(imported, {3, 2}, {1, 2, 3, 4, 5, 6}); }

// The network's output for x and a position that only running tells.
Result<std::vector<Tensor>> run_at(const Imported& imported, int64_t position) {
  EXPECT_EQ(problems(imported), "");
  const Tensor inputs[] = {Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6}), Tensor::of<int64_t>({}, {position})};
  return ir::interpret(imported.graph, inputs);
}

Floats floats_at(const Imported& imported, int64_t position) {
  const auto outputs = run_at(imported, position);
  EXPECT_TRUE(outputs) << outputs.error().to_string();
  if (!outputs) return {};
  const Tensor& y = (*outputs)[0];
  return {y.as<float>(), y.as<float>() + y.volume()};
}

std::string join(int64_t axis = 0, int64_t new_axis = 0) {
  return node("ConcatFromSequence", {"s"}, {"y"}, {int_attribute("axis", axis), int_attribute("new_axis", new_axis)});
}

// torch.unbind and torch.stack.
TEST(OnnxSequences, RowsAreTakenApartAndStacked) {
  const std::string rows = node("SplitToSequence", {"x"}, {"s"}, {int_attribute("keepdims", 0)});
  EXPECT_EQ(run(import_rows({rows, join(-1, 1)})), (Floats{1, 3, 5, 2, 4, 6}));
  EXPECT_EQ(run(import_rows({rows, join()})), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(run(import_rows({rows, node("SequenceAt", {"s", "p"}, {"y"})}, {integer("p", -1)})), (Floats{5, 6}));
}

// torch.split by an extent that leaves a remainder, and by a list. Both keep the dimension whatever keepdims says.
TEST(OnnxSequences, PartsOfGivenExtents) {
  const std::string split = node("SplitToSequence", {"x", "e"}, {"s"}, {int_attribute("keepdims", 0)});
  const std::string last = node("SequenceAt", {"s", "p"}, {"y"});
  EXPECT_EQ(run(import_rows({split, last}, {integer("e", 2), integer("p", 1)})), (Floats{5, 6}));
  EXPECT_EQ(run(import_rows({split, last}, {raw_tensor<int64_t>("e", 7, {2}, {1, 2}), integer("p", 1)})),
            (Floats{3, 4, 5, 6}));
  EXPECT_EQ(run(import_rows({split, last}, {integer("e", INT64_MAX), integer("p", -1)})), (Floats{1, 2, 3, 4, 5, 6}));
}

TEST(OnnxSequences, InsertEraseAndLength) {
  const std::vector<std::string> made = {node("SequenceEmpty", {}, {"none"}), node("Neg", {"x"}, {"n"}),
                                         node("SequenceInsert", {"none", "x"}, {"one"}),
                                         node("SequenceInsert", {"one", "n", "p"}, {"s"})};
  const auto with = [&](const std::string& last) {
    std::vector<std::string> nodes = made;
    nodes.push_back(last);
    return nodes;
  };
  const Floats x = {1, 2, 3, 4, 5, 6}, n = {-1, -2, -3, -4, -5, -6};
  Floats both = n;
  both.insert(both.end(), x.begin(), x.end());
  EXPECT_EQ(run(import_rows(with(join()), {integer("p", 0)})), both);
  std::vector<std::string> erased = with(node("SequenceErase", {"s", "p"}, {"t"}));
  erased.push_back(node("SequenceAt", {"t", "p"}, {"y"}));
  EXPECT_EQ(run(import_rows(erased, {integer("p", 0)})), x);
  std::vector<std::string> counted = with(node("SequenceLength", {"s"}, {"l"}));
  counted.push_back(node("Cast", {"l"}, {"y"}, {int_attribute("to", 1)}));
  EXPECT_EQ(run(import_rows(counted, {integer("p", 0)})), Floats{2});
}

// Positions that only running tells: of tensors that are alike, and of such that are not.
TEST(OnnxSequences, OpenPositions) {
  const std::string position = value_info("p", 7, {});
  const auto take = [&](const char* extent) {
    return import_rows({node("SplitToSequence", {"x", "e"}, {"s"}), node("SequenceAt", {"s", "p"}, {"y"})},
                       {integer("e", *extent - '0')}, {kEvery}, {position});
  };
  EXPECT_EQ(floats_at(take("1"), 1), (Floats{3, 4}));
  EXPECT_EQ(floats_at(take("1"), -1), (Floats{5, 6}));
  EXPECT_EQ(floats_at(take("2"), 0), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(floats_at(take("2"), -1), (Floats{5, 6}));
  for (const int64_t outside : {2, 3, 4, -3, -4}) EXPECT_FALSE(run_at(take("2"), outside)) << outside;
  const std::string split = node("SplitToSequence", {"x"}, {"r"});
  const std::string joined = join();
  const Imported inserted = import_rows({split, node("SequenceInsert", {"r", "t", "p"}, {"s"}), joined},
                                        {raw_tensor<float>("t", 1, {2, 2}, {7, 7, 8, 8})}, {kEvery}, {position});
  EXPECT_EQ(floats_at(inserted, 0), (Floats{7, 7, 8, 8, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(floats_at(inserted, -1), (Floats{1, 2, 3, 4, 7, 7, 8, 8, 5, 6}));
  EXPECT_EQ(floats_at(inserted, 3), (Floats{1, 2, 3, 4, 5, 6, 7, 7, 8, 8}));
  for (const int64_t outside : {4, -4}) EXPECT_FALSE(run_at(inserted, outside)) << outside;
  const Imported erased =
      import_rows({split, node("SequenceErase", {"r", "p"}, {"s"}), joined}, {}, {kEvery}, {position});
  EXPECT_EQ(floats_at(erased, 0), (Floats{3, 4, 5, 6}));
  EXPECT_EQ(floats_at(erased, -2), (Floats{1, 2, 5, 6}));
  EXPECT_EQ(floats_at(erased, 2), (Floats{1, 2, 3, 4}));
  for (const int64_t outside : {3, -4}) EXPECT_FALSE(run_at(erased, outside)) << outside;
}

// SequenceMap over two sequences and a tensor; its graph captures x as well.
TEST(OnnxSequences, MapsEachElement) {
  const std::string body = graph({{node("Add", {"a", "b"}, {"c"}), node("Mul", {"c", "k"}, {"d"}),
                                   node("ReduceMax", {"x"}, {"m"}), node("Add", {"d", "m"}, {"e"})},
                                  {},
                                  {value_info("a", 1, {2}), value_info("b", 1, {2}), value_info("k", 1, {})},
                                  {value_info("e", 1, {1, 2})}});
  EXPECT_EQ(run(import_rows({node("SplitToSequence", {"x"}, {"r"}),
                             node("SequenceMap", {"r", "r", "ten"}, {"s"}, {graph_attribute("body", body)}), join()},
                            {raw_tensor<float>("ten", 1, {}, {10})})),
            (Floats{26, 46, 66, 86, 106, 126}));
}

std::string inserting_body() {
  return graph({{node("Gather", {"x", "i"}, {"row"}), node("SequenceInsert", {"v", "row"}, {"w"}),
                 node("Identity", {"c"}, {"d"})},
                {},
                {value_info("i", 7, {}), value_info("c", 9, {}), float_value("v", kSequence)},
                {value_info("d", 9, {}), float_value("w", kSequence), value_info("row", 1, {2})}});
}

// What it stacks comes, too.
TEST(OnnxSequences, LoopsCollect) {
  const std::string loop = node("Loop", {"n", "", "none"}, {"s", "rows"}, {graph_attribute("body", inserting_body())});
  const std::vector<std::string> nodes = {node("SequenceEmpty", {}, {"none"}), loop, join(0, 1)};
  EXPECT_EQ(run(import_rows(nodes, {integer("n", 2)})), (Floats{1, 2, 3, 4}));
  std::vector<std::string> stacked = {nodes[0], loop, node("Neg", {"rows"}, {"y"})};
  EXPECT_EQ(run(import_rows(stacked, {integer("n", 2)})), (Floats{-1, -2, -3, -4}));
  EXPECT_EQ(run(import_rows(stacked, {integer("n", 0)})), Floats{});
  const std::string trips = value_info("n", 7, {});
  EXPECT_EQ(floats_at(import_rows(nodes, {}, {kEvery}, {trips}), 3), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(floats_at(import_rows(stacked, {}, {kEvery}, {trips}), 2), (Floats{-1, -2, -3, -4}));
}

TEST(OnnxSequences, OutputsOfOpenLength) {
  const std::string loop = node("Loop", {"n", "", "none"}, {"s", "rows"}, {graph_attribute("body", inserting_body())});
  const std::vector<std::string> nodes = {node("SequenceEmpty", {}, {"none"}), loop};
  const std::vector<std::string> more = {value_info("n", 7, {})};
  const Imported open = import_rows(nodes, {}, {float_value("s", kSequence)}, more);
  const auto outputs = run_at(open, 2);
  ASSERT_TRUE(outputs) << outputs.error().to_string();
  ASSERT_EQ(open.graph.outputs().size(), 2U);
  EXPECT_EQ(open.graph.outputs()[0].name, "s_elements");
  EXPECT_EQ(open.graph.outputs()[1].name, "s_dims");
  EXPECT_EQ((*outputs)[0].dims(), (Dims{4}));
  EXPECT_EQ((*outputs)[1].dims(), (Dims{2, 1}));
  const std::string clash =
      problems(import_rows({nodes[0], loop, node("Neg", {"rows"}, {"s_dims"})}, {},
                           {float_value("s", kSequence), value_info("s_dims", 1, {-1, 2})}, more));
  EXPECT_NE(clash.find("is the engine's tensor 's_dims', but another"), std::string::npos) << clash;
}

// Bodies of a loop that stays one see the tensors of sequences around it.
TEST(OnnxSequences, AreCaptured) {
  const std::string body = graph(
      {{node("SequenceAt", {"s", "i"}, {"row"}), node("Add", {"v", "row"}, {"w"}), node("Identity", {"c"}, {"d"})},
       {},
       {value_info("i", 7, {}), value_info("c", 9, {}), value_info("v", 1, {1, 2})},
       {value_info("d", 9, {}), value_info("w", 1, {1, 2})}});
  const Imported imported = import_rows(
      {node("SplitToSequence", {"x"}, {"s"}), node("Loop", {"n", "", "zeros"}, {"y"}, {graph_attribute("body", body)})},
      {raw_tensor<float>("zeros", 1, {1, 2}, {0, 0})}, {kEvery}, {value_info("n", 7, {})});
  EXPECT_EQ(floats_at(imported, 2), (Floats{4, 6}));
  EXPECT_EQ(floats_at(imported, 3), (Floats{9, 12}));
}

TEST(OnnxSequences, BranchesYieldThem) {
  const auto branch = [](const char* op) {
    return graph(
        {{node(op, {"x"}, {"t"}), node("SequenceConstruct", {"t"}, {"u"})}, {}, {}, {float_value("u", kSequence)}});
  };
  const std::string longer =
      graph({{node("SequenceConstruct", {"x", "x"}, {"u"})}, {}, {}, {float_value("u", kSequence)}});
  const auto nodes = [&](const std::string& yes, const std::string& no) {
    return std::vector<std::string>{
        node("Cast", {"p"}, {"b"}, {int_attribute("to", 9)}),
        node("If", {"b"}, {"s"}, {graph_attribute("then_branch", yes), graph_attribute("else_branch", no)}), join()};
  };
  const std::string position = value_info("p", 7, {});
  const Imported imported = import_rows(nodes(branch("Neg"), branch("Abs")), {}, {kEvery}, {position});
  EXPECT_EQ(floats_at(imported, 1), (Floats{-1, -2, -3, -4, -5, -6}));
  EXPECT_EQ(floats_at(imported, 0), (Floats{1, 2, 3, 4, 5, 6}));
  const Imported of_two_lengths = import_rows(nodes(longer, branch("Neg")), {}, {kEvery}, {position});
  EXPECT_EQ(floats_at(of_two_lengths, 1), (Floats{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(floats_at(of_two_lengths, 0), (Floats{-1, -2, -3, -4, -5, -6}));
  EXPECT_EQ(run(import_rows(nodes(longer, branch("Abs")), {integer("p", 1)})).size(), 12U);
}

TEST(OnnxSequences, Optionals) {
  const auto has = [](std::vector<std::string> nodes) {
    nodes.push_back(node("OptionalHasElement", {"o"}, {"h"}));
    nodes.push_back(node("Cast", {"h"}, {"y"}, {int_attribute("to", 1)}));
    return run(import_rows(std::move(nodes)));
  };
  EXPECT_EQ(has({node("Optional", {"x"}, {"o"})}), Floats{1});
  EXPECT_EQ(has({node("SequenceConstruct", {"x"}, {"s"}), node("Optional", {"s"}, {"o"})}), Floats{1});
  EXPECT_EQ(has({empty_optional("o")}), Floats{0});
  EXPECT_EQ(run(import_rows({node("Optional", {"x"}, {"o"}), node("OptionalGetElement", {"o"}, {"y"})})),
            (Floats{1, 2, 3, 4, 5, 6}));
  const auto none = problems(import_rows({empty_optional("o"), node("OptionalGetElement", {"o"}, {"y"})}));
  EXPECT_NE(none.find("has no element"), std::string::npos) << none;
  const auto untyped = problems(import_rows({node("Optional", {}, {"y"})}));
  EXPECT_NE(untyped.find("neither an element nor the attribute 'type'"), std::string::npos) << untyped;
  const auto output = problems(import_rows({empty_optional("y")}, {}, {float_value("y", kOptional)}));
  EXPECT_NE(output.find("optional without an element"), std::string::npos) << output;
}

TEST(OnnxSequences, OutputsAreTheirTensors) {
  const std::string split = node("SplitToSequence", {"x"}, {"y"});
  const Imported imported = import_rows({split}, {}, {float_value("y", kSequence)});
  ASSERT_EQ(problems(imported), "");
  ASSERT_EQ(imported.graph.outputs().size(), 3U);
  EXPECT_EQ(imported.graph.outputs()[2].name, "y_2");
  const auto none = problems(import_rows({node("SequenceEmpty", {}, {"y"})}, {}, {float_value("y", kSequence)}));
  EXPECT_NE(none.find("empty sequence"), std::string::npos) << none;
  const auto taken = problems(import_rows({split, node("Neg", {"x"}, {"y_1"})}, {},
                                          {float_value("y", kSequence), value_info("y_1", 1, {3, 2})}));
  EXPECT_NE(taken.find("'y_1', but another"), std::string::npos) << taken;
}

// A node, which makes `z` of `q`, of these inputs.
Imported import_inputs(const std::string& made, const std::vector<std::string>& inputs,
                       std::map<std::string, InputElements> elements) {
  ImportOptions options;
  options.input_elements = std::move(elements);
  const std::string cast = node("Cast", {"z"}, {"y"}, {int_attribute("to", 1)});
  return import(model(graph({{made, cast}, {}, inputs, {kEvery}})), options);
}

TEST(OnnxSequences, InputsAreAsManyTensorsAsIsTold) {
  const std::string q = float_value("q", kSequence);
  const Imported two = import_inputs(node("ConcatFromSequence", {"q"}, {"z"}, {int_attribute("axis", 0)}), {q},
                                     {{"q", {2, Dims{-1, 2}}}});
  ASSERT_EQ(problems(two), "");
  ASSERT_EQ(two.graph.inputs().size(), 2U);
  EXPECT_EQ(two.graph.inputs()[1]->name(), "q_1");
  const Tensor inputs[] = {Tensor::of<float>({1, 2}, {1, 2}), Tensor::of<float>({2, 2}, {3, 4, 5, 6})};
  const auto outputs = ir::interpret(two.graph, inputs);
  ASSERT_TRUE(outputs) << outputs.error().to_string();
  EXPECT_EQ((*outputs)[0].dims(), (Dims{3, 2}));
  EXPECT_EQ((*outputs)[0].as<float>()[5], 6);
  const Imported none = import_inputs(node("SequenceLength", {"q"}, {"z"}), {q}, {{"q", {0, {}}}});
  EXPECT_EQ(problems(none), "");
  EXPECT_TRUE(none.graph.inputs().empty());
}

TEST(OnnxSequences, OptionalInputsAreThereUnlessTheyAreSaidNotToBe) {
  const std::string q = float_value("q", kOptional);
  const Imported there = import_inputs(node("OptionalHasElement", {"q"}, {"z"}), {q}, {{"q", {1, Dims{2}}}});
  EXPECT_EQ(problems(there), "");
  EXPECT_EQ(there.graph.inputs().size(), 1U);
  const Imported none =
      import_inputs(node("OptionalHasElement", {"q"}, {"z"}), {q}, {{"q", {InputElements::kNone, {}}}});
  EXPECT_EQ(problems(none), "");
  EXPECT_TRUE(none.graph.inputs().empty());
  for (const auto& [imported, wanted] : {std::pair(&there, 1.0F), std::pair(&none, 0.0F)}) {
    const Tensor input = Tensor::of<float>({2}, {1, 2});
    const auto outputs = ir::interpret(imported->graph, std::span(&input, imported->graph.inputs().size()));
    ASSERT_TRUE(outputs) << outputs.error().to_string();
    EXPECT_EQ((*outputs)[0].as<float>()[0], wanted);
  }
}

TEST(OnnxSequences, WhatIsToldOfInputsMustFitThem) {
  const std::string q = float_value("q", kSequence), x = value_info("q_1", 1, {2});
  const auto said = [](const Imported& imported, const char* text) {
    EXPECT_NE(problems(imported).find(text), std::string::npos) << problems(imported) << "wanted: " << text;
  };
  const InputElements two{2, Dims{2}};
  said(import_inputs(node("SequenceLength", {"q"}, {"z"}), {q}, {}),
       "tell it by lathe::setInputElements() of lathe_onnx.h");
  said(import_inputs(node("SequenceLength", {"q"}, {"z"}), {q}, {{"q", {-1, {}}}}), "a sequence of -1 tensors");
  said(import_inputs(node("SequenceLength", {"q"}, {"z"}), {q}, {{"q", {5000, {}}}}), "a sequence of 5000 tensors");
  said(import_inputs(node("SequenceLength", {"q"}, {"z"}), {q}, {{"q", {2, {}}}}), "input 'q_0' has no shape");
  said(import_inputs(node("SequenceLength", {"q"}, {"z"}), {q, x}, {{"q", two}}), "tensor 1 of input 'q'");
  said(import_inputs(node("SequenceLength", {"q"}, {"z"}), {q}, {{"q", two}, {"r", two}}), "'r', which is no input");
  said(import_inputs(node("Neg", {"q"}, {"z"}), {value_info("q", 1, {2})}, {{"q", two}}), "input 'q' is 2 tensors");
  said(import_inputs(node("Neg", {"q"}, {"z"}), {value_info("q", 8, {2})}, {}),
       "is of strings, which Lathe does not take there");
}

struct Fault {
  std::vector<std::string> nodes;
  std::vector<std::string> initializers;
  const char* text;
};

TEST(OnnxSequences, ErrorsSayWhatIsWrong) {
  const std::string made = node("SequenceConstruct", {"x", "x"}, {"s"});
  const std::string none = node("SequenceEmpty", {}, {"s"});
  const std::string body = graph({{node("Neg", {"a"}, {"b"})}, {}, {value_info("a", 1, {})}, {value_info("b", 1, {})}});
  const std::string mapped = node("SequenceMap", {"s", "t"}, {"y"}, {graph_attribute("body", body)});
  const Fault faults[] = {
      {{made, node("Neg", {"s"}, {"y"})}, {}, "is a sequence of tensors, but must be a tensor"},
      {{made, node("Clip", {"x", "s"}, {"y"})}, {}, "is a sequence of tensors, but must be a tensor"},
      {{empty_optional("o"), node("Neg", {"o"}, {"y"})}, {}, "an optional without an element, but must be a tensor"},
      {{node("SequenceLength", {"x"}, {"y"})}, {}, "is a tensor, but must be a sequence"},
      {{empty_optional("o"), node("SequenceLength", {"o"}, {"y"})}, {}, "but must be a sequence"},
      {{node("SequenceConstruct", {}, {"y"})}, {}, "input 0 is required"},
      {{node("SequenceConstruct", {"x", "p"}, {"y"})},
       {integer("p", 0)},
       "a tensor of i64 cannot be in a sequence of f32"},
      {{none, node("SequenceInsert", {"s", "p"}, {"y"})}, {integer("p", 0)}, "cannot be in a sequence"},
      {{node("SequenceEmpty", {}, {"y"}, {int_attribute("dtype", 14)})}, {}, "its type complex64 is not supported"},
      {{made, node("SequenceAt", {"s", "p"}, {"y"})}, {integer("p", 2)}, "position 2 is outside [-2, 2)"},
      {{made, node("SequenceAt", {"s", "x"}, {"y"})}, {}, "its position is f32"},
      {{made, node("SequenceAt", {"s", "p"}, {"y"})},
       {integer("p", INT64_MAX)},
       "position 9223372036854775807 is outside [-2, 2)"},
      {{none, node("SequenceAt", {"s", "p"}, {"y"})}, {integer("p", 0)}, "its sequence is empty"},
      {{made, node("SequenceInsert", {"s", "x", "p"}, {"y"})}, {integer("p", -3)}, "position -3 is outside [-2, 3)"},
      {{made, node("SequenceErase", {"s", "p"}, {"y"})}, {integer("p", -3)}, "position -3 is outside [-2, 2)"},
      {{none, node("SequenceErase", {"s"}, {"y"})}, {}, "nothing can be erased"},
      {{none, join()}, {}, "nothing can be joined"},
      {{made, node("ConcatFromSequence", {"s"}, {"y"})}, {}, "'axis' is required"},
      {{node("SplitToSequence", {"x", "e"}, {"y"})}, {integer("e", 0)}, "must be positive"},
      {{node("SplitToSequence", {"x", "e"}, {"y"})}, {raw_tensor<float>("e", 1, {}, {2.5F})}, "its split is f32"},
      {{node("SplitToSequence", {"x", "e"}, {"y"})}, {raw_tensor<float>("e", 1, {1}, {3})}, "its split is f32"},
      {{node("ConstantOfShape", {"e"}, {"z"}), node("SplitToSequence", {"z"}, {"y"})},
       {raw_tensor<int64_t>("e", 7, {1}, {4097})},
       "would have 4097 tensors"},
      {{node("SplitToSequence", {"x"}, {"y"}, {int_attribute("axis", 2)})}, {}, "axis 2 is outside"},
      {{node("SplitToSequence", {"e"}, {"y"})}, {integer("e", 0)}, "a scalar cannot be split"},
      {{made, node("SequenceConstruct", {"x"}, {"t"}), mapped}, {}, "a sequence of 1 tensors, but input 0 has 2"},
  };
  for (const Fault& fault : faults) {
    const std::string text = problems(import_rows(fault.nodes, fault.initializers));
    EXPECT_NE(text.find(fault.text), std::string::npos) << text << "wanted: " << fault.text;
  }
}

}  // namespace
}  // namespace lathe::onnx
