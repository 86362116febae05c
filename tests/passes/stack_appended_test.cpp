// SPDX-License-Identifier: Apache-2.0
// Tensors to which the rounds of loops append: pass stack_appended.
#include <gtest/gtest.h>

#include "fixtures/test_tensor.h"
#include "ir/interpret.h"
#include "ops/rules.h"
#include "passes/pass.h"

namespace lathe {
namespace {

// A loop of `n` rounds over [a, b], `x`, and [2, 3], `y`; %in0 and %in1 are what a round knows of them.
std::string loop_of(std::string_view body, std::string_view results, std::string_view outputs = "output %last0\n") {
  return fmt::format(R"(graph "g" {{
  symbol a in [0, 9]
  symbol b in [1, 9]
  symbol n in [0, 9]
  input %x: f32[a, b]
  input %y: f32[2, b]
  input %rounds: i64[n]
  %count = shape{{start=0, end=1}}(%rounds)
  %last0, %last1 = loop{{carried=2}}(%count, _, %x, %y, %y) body {{
    input %round: i64[]
    input %holds: bool[]
    input %in0: f32[a, b]
    input %in1: f32[2, b]
    input %all: f32[2, b]
    {}
    output %holds
    {}
  }}
  {}}})",
                     body, results, outputs);
}

ir::Graph parsed(const std::string& text) {
  Result<ir::Graph> graph = ir::parse_graph(text);
  EXPECT_TRUE(graph) << graph.error().to_string() << text;
  return graph ? std::move(*graph) : ir::Graph();
}

const ir::Node* loop_in(const ir::Graph& graph) {
  for (const auto& node : graph.nodes())
    if (node->is(OpKind::loop)) return node.get();
  return nullptr;
}

// Runs the pass, which must leave so many carried values and change no result. Gives the loop.
const ir::Node* expect_carried(ir::Graph& graph, int64_t carried) {
  const ir::Graph before = graph.clone();
  PassContext context;
  context.verify = true;
  const int64_t at_first = loop_in(graph)->attrs<LoopAttrs>().carried;
  const Result<bool> changed = run_pass("stack_appended", graph, context);
  EXPECT_TRUE(changed) << changed.error().to_string();
  EXPECT_EQ(changed && *changed, carried < at_first);
  const ir::Node* loop = loop_in(graph);
  EXPECT_EQ(loop->attrs<LoopAttrs>().carried, carried) << ir::to_text(graph);
  for (const int64_t rounds : {0, 1, 3})
    for (const int64_t rows : {0, 2}) {
      const Tensor inputs[] = {random_tensor(DType::f32, {rows, 3}, 7), random_tensor(DType::f32, {2, 3}, 8),
                               *Tensor::allocate(DType::i64, {rounds})};
      const auto wanted = ir::interpret(before, inputs), found = ir::interpret(graph, inputs);
      EXPECT_TRUE(wanted && found) << rounds;
      for (size_t i = 0; wanted && found && i < wanted->size(); ++i) {
        EXPECT_EQ((*found)[i].dims(), (*wanted)[i].dims());
        EXPECT_EQ(to_doubles((*found)[i]), to_doubles((*wanted)[i]));
      }
    }
  return loop;
}

TEST(StackAppended, TensorsThatRoundsOnlyAppendToAreNotCarried) {
  ir::Graph graph = parsed(loop_of("%more = concat{axis=0}(%in0, %in1, %all)\n%next = unary{op=neg}(%in1)",
                                   "output %more\noutput %next", "output %last0\noutput %last1\n"));
  const ir::Node* loop = expect_carried(graph, 1);
  EXPECT_EQ(loop->attrs<LoopAttrs>().stack_axes, Ints{0});
  EXPECT_EQ(loop->output(1)->rank(), 3);
}

TEST(StackAppended, AlongAnyAxisAndTwoAtOnce) {
  ir::Graph graph = parsed(loop_of("%m = concat{axis=-2}(%in0, %all)\n%k = concat{axis=1}(%in1, %all)",
                                   "output %m\noutput %k", "output %last0\noutput %last1\n"));
  expect_carried(graph, 0);
}

// What is read, what is appended to in front, and pieces whose sizes differ.
TEST(StackAppended, OthersAreCarried) {
  const std::pair<const char*, const char*> cases[] = {
      {"%m = concat{axis=0}(%in0, %all)\n%t = reduce{op=sum, keepdims=true}(%in0, %zero)\n"
       "%next = elementwise{op=add}(%in1, %t)",
       "output %m\noutput %next"},
      {"%m = concat{axis=0}(%in0, %all)\n%t = reduce{op=sum, keepdims=true}(%m, %zero)\n"
       "%next = elementwise{op=add}(%in1, %t)",
       "output %m\noutput %next"},
      {"%m = concat{axis=0}(%all, %in0)", "output %m\noutput %in1"},
      {"%m = concat{axis=0}(%in0, %in1)\n%k = concat{axis=0}(%all, %in1)", "output %m\noutput %k"},
  };
  for (const auto& [body, results] : cases) {
    ir::Graph graph = parsed(loop_of(fmt::format("%zero = constant{{value=i64[1]{{0}}}}()\n{}", body), results));
    expect_carried(graph, 2);
  }
}

}  // namespace
}  // namespace lathe
