// SPDX-License-Identifier: Apache-2.0
// Loops that are written flat: what becomes of them, and what they compute then.
#include <gtest/gtest.h>

#include "fixtures/test_tensor.h"
#include "ir/interpret.h"
#include "ops/rules.h"
#include "passes/pass.h"

namespace lathe {
namespace {

ir::Graph parsed(std::string_view text) {
  Result<ir::Graph> graph = ir::parse_graph(text);
  EXPECT_TRUE(graph) << graph.error().to_string();
  return graph ? std::move(*graph) : ir::Graph();
}

ir::Graph formed(std::string_view text) {
  ir::Graph graph = parsed(text);
  PassContext context;
  context.verify = true;
  const auto reports = run_passes(graph, context);
  EXPECT_TRUE(reports) << reports.error().to_string();
  return graph;
}

std::string refusal(std::string_view text) {
  ir::Graph graph = parsed(text);
  PassContext context;
  const Result<bool> result = run_pass("form_loops", graph, context);
  return result ? "none" : result.error().to_string();
}

size_t count(const ir::Graph& graph, OpKind kind) {
  size_t found = 0;
  for (const auto& node : graph.nodes()) found += node->is(kind);
  return found;
}

// The outputs for these inputs, as text.
std::string outputs(const ir::Graph& graph, const std::vector<Tensor>& inputs) {
  const auto results = ir::interpret(graph, inputs);
  if (!results) return results.error().to_string();
  std::string text;
  for (const Tensor& result : *results) {
    text += (text.empty() ? "" : "; ") + to_string(to_shape(result.dims())) + ":";
    for (int64_t i = 0; i < result.volume(); ++i) text += fmt::format(" {:g}", result.at_double(i));
  }
  return text;
}

Tensor tensor(DType dtype, Dims dims, std::initializer_list<double> values) {
  Tensor made = *Tensor::allocate(dtype, std::move(dims));
  from_doubles(std::vector<double>(values), made);
  return made;
}

// Sums of rows, from the first and from the last, and each round's sum. `length`: of the sums side by side.
constexpr std::string_view kSums = R"(graph "sums" {
  input %x: f32[n, 2]
  input %factor: f32[]
  input %trips: i32[]
  input %length: i64[]
  %zero = constant{value=f32[2]{0, 0}}()
  %sum = loop_argument{carried=true}(%zero)
  %row = loop_argument(%x)
  %back = loop_argument{reversed=true}(%x)
  %twice = elementwise{op=mul}(%row, %factor)
  %far = elementwise{op=add}(%twice, %back)
  %next = elementwise{op=add}(%sum, %far)
  %end = loop_end{carried=1}(%trips, _, %sum, %next, %row, %back)
  %last = loop_result(%sum, %end)
  %all = loop_result{stacks=true, axis=-1}(%next, %end, %length)
  %reversed = loop_result{stacks=true, reversed=true}(%next, %end, %length)
  %shifted = elementwise{op=add}(%last, %factor)
  output %shifted
  output %all
  output %reversed
})";

TEST(FormLoops, CarriedScannedAndStackedValues) {
  const ir::Graph graph = formed(kSums);
  EXPECT_EQ(count(graph, OpKind::loop), 1u);
  EXPECT_EQ(count(graph, OpKind::loop_argument) + count(graph, OpKind::loop_end) + count(graph, OpKind::loop_result),
            0u);
  const auto run = [&](double trips, double length) {
    return outputs(graph, {tensor(DType::f32, {3, 2}, {1, 2, 3, 4, 5, 6}), tensor(DType::f32, {}, {10}),
                           tensor(DType::i32, {}, {trips}), tensor(DType::i64, {}, {length})});
  };
  EXPECT_EQ(run(3, 3), "[2]: 109 142; [2, 3]: 15 48 99 26 70 132; [3, 2]: 99 132 48 70 15 26");
  // Reversed slices begin at the trip count's.
  EXPECT_EQ(run(2, 2), "[2]: 54 76; [2, 2]: 13 44 24 66; [2, 2]: 44 66 13 24");
  EXPECT_EQ(run(2, 3), "[2]: 54 76; [2, 3]: 13 44 0 24 66 0; [3, 2]: 0 0 44 66 13 24");
  EXPECT_EQ(run(2, 1), "[2]: 54 76; [2, 1]: 13 24; [1, 2]: 13 24");
  EXPECT_EQ(run(0, 1), "[2]: 10 10; [2, 1]: 0 0; [1, 2]: 0 0");
  EXPECT_EQ(run(0, 0), "[2]: 10 10; [2, 0]:; [0, 2]:");
}

// Doubles while the sum of the elements is below a limit; the condition is computed from what is carried.
TEST(FormLoops, ConditionsAreThoseOfTheRoundThatBegins) {
  const ir::Graph graph = formed(R"(graph g {
  input %x: f32[2]
  input %limit: f32[]
  input %most: i64[]
  %y = loop_argument{carried=true}(%x)
  %axes = constant{value=i64[1]{0}}()
  %sum = reduce{op=sum}(%y, %axes)
  %few = elementwise{op=less}(%sum, %limit)
  %next = elementwise{op=add}(%y, %y)
  %end = loop_end{carried=1}(%most, %few, %y, %next)
  %last = loop_result(%y, %end)
  output %last
})");
  const auto run = [&](double limit, double most) {
    return outputs(graph,
                   {tensor(DType::f32, {2}, {1, 2}), tensor(DType::f32, {}, {limit}), tensor(DType::i64, {}, {most})});
  };
  EXPECT_EQ(run(20, 9), "[2]: 8 16");
  EXPECT_EQ(run(20, 2), "[2]: 4 8");
  EXPECT_EQ(run(3, 9), "[2]: 1 2");
}

// Columns of rows: an inner loop that reads what the outer one carries, and a value from outside of both.
TEST(FormLoops, Nest) {
  const ir::Graph graph = formed(R"(graph g {
  input %x: f32[n, m]
  input %bias: f32[]
  %zero = constant{value=f32[]{0}}()
  %total = loop_argument{carried=true}(%zero)
  %row = loop_argument(%x)
  %sum = loop_argument{carried=true}(%total)
  %element = loop_argument(%row)
  %biased = elementwise{op=add}(%element, %bias)
  %weighed = elementwise{op=mul}(%biased, %total)
  %more = elementwise{op=add}(%weighed, %biased)
  %next = elementwise{op=add}(%sum, %more)
  %inner = loop_end{carried=1}(_, _, %sum, %next, %element)
  %row_total = loop_result(%sum, %inner)
  %outer = loop_end{carried=1}(_, _, %total, %row_total, %row)
  %last = loop_result(%total, %outer)
  output %last
})");
  EXPECT_EQ(count(graph, OpKind::loop), 1u);
  double total = 0;
  for (const auto& row : {std::pair{1., 2.}, {3., 4.}, {5., 6.}}) {
    double sum = total;
    for (double element : {row.first, row.second}) sum += (element + 1) * total + (element + 1);
    total = sum;
  }
  EXPECT_EQ(outputs(graph, {tensor(DType::f32, {3, 2}, {1, 2, 3, 4, 5, 6}), tensor(DType::f32, {}, {1})}),
            fmt::format("[]: {:g}", total));
}

TEST(FormLoops, CarriedValuesGrow) {
  const ir::Graph graph = formed(R"(graph g {
  input %x: f32[2, 3]
  %y = loop_argument{carried=true, varying=[0]}(%x)
  %trips = constant{value=i64[]{3}}()
  %next = concat(%y, %x)
  %end = loop_end{carried=1}(%trips, _, %y, %next)
  %last = loop_result(%y, %end)
  %axes = constant{value=i64[2]{0, 1}}()
  %sum = reduce{op=sum}(%last, %axes)
  output %sum
})");
  EXPECT_EQ(outputs(graph, {tensor(DType::f32, {2, 3}, {1, 1, 1, 1, 1, 1})}), "[1, 1]: 24");
}

TEST(FormLoops, ValuesLeaveByResultsAlone) {
  constexpr std::string_view kLoop = R"(graph g {
  input %x: f32[3]
  %y = loop_argument{carried=true}(%x)
  %trips = constant{value=i64[]{3}}()
  %next = elementwise{op=add}(%y, %x)
  %end = loop_end{carried=1}(%trips, _, %y, %next)
  %last = loop_result(%y, %end)
  output %last
)";
  EXPECT_EQ(refusal(std::string(kLoop) + "}"), "none");
  EXPECT_NE(refusal(std::string(kLoop) + "%out = unary{op=exp}(%next)\n output %out\n}")
                .find("'next' is a value of each round of loop 'end', but 'out' outside of the loop reads it"),
            std::string::npos);
  EXPECT_NE(refusal(std::string(kLoop) + "output %y\n}").find("network output 'y' outside"), std::string::npos);
  EXPECT_NE(refusal(std::string(kLoop) + "%z = loop_result(%x, %end)\n output %z\n}").find("does not carry"),
            std::string::npos);
  EXPECT_NE(refusal("graph g {\n input %x: f32[3]\n %y = loop_argument(%x)\n output %y\n}").find("has no end"),
            std::string::npos);
}

// A round begins if its own slice says so; behind the last slice no round does.
TEST(FormLoops, ConditionsReadTheSlicesOfTheirRounds) {
  const auto graph_of = [](std::string_view reversed, std::string_view controls) {
    return fmt::format(R"(graph g {{
  input %go: bool[n]
  input %x: f32[3]
  %trips = constant{{value=i64[]{{3}}}}()
  %y = loop_argument{{carried=true}}(%x)
  %slice = loop_argument{{reversed={}}}(%go)
  %next = elementwise{{op=add}}(%y, %x)
  %holds = identity(%slice)
  %end = loop_end{{carried=1}}({}, %y, %next, %slice)
  %last = loop_result(%y, %end)
  %all = loop_result{{stacks=true}}(%next, %end)
  output %last
  output %all
}})",
                       reversed, controls);
  };
  const auto rounds = [&](const ir::Graph& graph, std::vector<double> go) {
    const int64_t count = std::ssize(go);
    Tensor truths = *Tensor::allocate(DType::boolean, {count});
    from_doubles(go, truths);
    const std::string text = outputs(graph, {truths, tensor(DType::f32, {3}, {1, 1, 1})});
    EXPECT_EQ(text.substr(0, 5), "[3]: ") << text;
    EXPECT_NE(text.find(fmt::format("; [{}, 3]:", text[5] - '1')), std::string::npos) << text;
    return text[5] - '1';
  };
  const ir::Graph forward = formed(graph_of("false", "_, %holds"));
  EXPECT_EQ(rounds(forward, {1, 1, 0, 1}), 2);
  EXPECT_EQ(rounds(forward, {0, 1}), 0);
  EXPECT_EQ(rounds(forward, {1, 1, 1, 1}), 4);
  EXPECT_EQ(rounds(forward, {}), 0);
  const ir::Graph backward = formed(graph_of("true", "_, %slice"));
  EXPECT_EQ(rounds(backward, {0, 0, 1}), 1);
  EXPECT_EQ(rounds(backward, {1, 1}), 2);
  EXPECT_EQ(rounds(formed(graph_of("false", "%trips, %slice")), {1, 1, 1, 1}), 3);
  EXPECT_EQ(rounds(formed(graph_of("true", "%trips, %holds")), {1, 1, 1, 0}),
            3);  // from the slice of the last round on
}

// Two choices by one condition, one within another's branch, and work that both sides need.
TEST(FormBranches, ComputeWhatTheChosenValueNeeds) {
  const ir::Graph graph = formed(R"(graph g {
  input %c: bool[]
  input %d: bool[]
  input %x: f32[2, 2]
  %both = matmul(%x, %x)
  %a = matmul(%both, %x)
  %b = matmul(%both, %both)
  %inner = choose{lazy=true}(%d, %a, %x)
  %y = choose{lazy=true}(%c, %inner, %b)
  %e = unary{op=exp}(%x)
  %z = choose{lazy=true}(%c, %x, %b)
  %few = choose{lazy=true}(%d, %e, %x)
  output %y
  output %z
  output %few
})");
  EXPECT_EQ(count(graph, OpKind::matmul), 1u);
  EXPECT_EQ(count(graph, OpKind::branch), 1u);
  EXPECT_EQ(count(graph, OpKind::choose), 1u);  // an exponential is not worth a decision
  for (const auto& node : graph.nodes()) {
    if (!node->is(OpKind::branch)) continue;
    EXPECT_EQ(node->num_outputs(), 2u);
    EXPECT_EQ(count(*node->bodies()[0], OpKind::choose) + count(*node->bodies()[0], OpKind::branch), 1u);
    EXPECT_EQ(count(*node->bodies()[1], OpKind::matmul), 1u);
  }
  const auto run = [&](double c, double d) {
    return outputs(graph, {tensor(DType::boolean, {}, {c}), tensor(DType::boolean, {}, {d}),
                           tensor(DType::f32, {2, 2}, {0, 1, 2, 0})});
  };
  EXPECT_EQ(run(1, 0), "[2, 2]: 0 1 2 0; [2, 2]: 0 1 2 0; [2, 2]: 0 1 2 0");
  EXPECT_EQ(run(1, 1).substr(0, 32), "[2, 2]: 0 2 4 0; [2, 2]: 0 1 2 0");
  EXPECT_EQ(run(0, 0), "[2, 2]: 4 0 0 4; [2, 2]: 4 0 0 4; [2, 2]: 0 1 2 0");
}

}  // namespace
}  // namespace lathe
