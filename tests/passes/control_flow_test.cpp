// SPDX-License-Identifier: Apache-2.0
// Graphs with bodies: their text, types, rules and plain evaluation.
#include <gtest/gtest.h>

#include "fixtures/test_tensor.h"
#include "ir/interpret.h"

namespace lathe::ir {
namespace {

// Adds a row of x in each round to a sum that is carried, and stacks the sums; x's rows are scanned.
constexpr std::string_view kRunningSum = R"(graph "sums" {
  symbol n in [0, 9]
  input %x: f32[n, 3]
  input %start: f32[3]
  input %factor: f32[]
  %last, %all = loop{carried=1, scan_axes=[0], scan_reversed=[0], stack_axes=[0], stack_reversed=[0]}(_, _, %start, %x, %factor) body {
    input %round: i64[]
    input %holds: bool[]
    input %sum: f32[3]
    input %row: f32[3]
    input %f: f32[]
    %scaled = elementwise{op=mul}(%row, %f)
    %next = elementwise{op=add}(%sum, %scaled)
    output %holds
    output %next
    output %next
  }
  output %last
  output %all
})";

Graph parsed(std::string_view text) {
  Result<Graph> graph = parse_graph(text);
  EXPECT_TRUE(graph) << graph.error().to_string();
  return graph ? std::move(*graph) : Graph();
}

std::vector<float> floats(const Tensor& tensor) {
  const float* data = tensor.as<float>();
  return {data, data + tensor.volume()};
}

Tensor tensor_of(Dims dims, std::vector<float> values) {
  Tensor tensor = *Tensor::allocate(DType::f32, std::move(dims));
  std::copy(values.begin(), values.end(), tensor.mutable_as<float>());
  return tensor;
}

template <class T>
Tensor scalar(DType dtype, T value) {
  Tensor tensor = *Tensor::allocate(dtype, {});
  tensor.mutable_as<T>()[0] = value;
  return tensor;
}

TEST(ControlFlow, LoopsAreEvaluatedRoundByRound) {
  const Graph graph = parsed(kRunningSum);
  EXPECT_TRUE(verify(graph));
  EXPECT_EQ(to_string(graph.outputs()[1].value->type(), graph), "f32[n, 3]");
  for (const int64_t rounds : {0, 2}) {
    const Tensor inputs[] = {
        tensor_of({rounds, 3}, rounds ? std::vector<float>{1, 2, 3, 4, 5, 6} : std::vector<float>{}),
        tensor_of({3}, {10, 20, 30}), tensor_of({}, {2})};
    const auto outputs = interpret(graph, inputs);
    ASSERT_TRUE(outputs) << outputs.error().to_string();
    EXPECT_EQ(floats((*outputs)[0]), rounds ? (std::vector<float>{20, 34, 48}) : (std::vector<float>{10, 20, 30}));
    EXPECT_EQ((*outputs)[1].dims(), (Dims{rounds, 3}));
    EXPECT_EQ(floats((*outputs)[1]), rounds ? (std::vector<float>{12, 24, 36, 20, 34, 48}) : std::vector<float>());
  }
}

TEST(ControlFlow, TextIsReadAgain) {
  const Graph graph = parsed(kRunningSum);
  const std::string text = to_text(graph);
  const Graph again = parsed(text);
  EXPECT_EQ(to_text(again), text);
  EXPECT_EQ(again.hash(), graph.hash());
  Graph copy = graph.clone();
  EXPECT_EQ(copy.hash(), graph.hash());
  Graph& body = *copy.nodes().back()->bodies()[0];
  ElementwiseAttrs difference;
  difference.op = ElementwiseOp::sub;
  ASSERT_TRUE(body.set_attributes(body.outputs()[1].value->producer(), difference));
  EXPECT_NE(copy.hash(), graph.hash());
  EXPECT_NE(to_text(copy), text);
}

// The carried value is one longer in each round, until the condition fails.
constexpr std::string_view kGrowing = R"(graph "growing" {
  symbol k in [1, 4]
  input %x: f32[k, 2]
  input %limit: f32[]
  %first = constant{value=bool[]{1}}()
  %last, %sizes = loop{carried=1, stack_axes=[0], stack_reversed=[1]}(_, %first, %x, %limit) body {
    input %round: i64[]
    input %holds: bool[]
    input %rows: f32[k, 2]
    input %most: f32[]
    %row = constant{value=f32[1, 2]{3, 4}}()
    %more = concat{axis=0}(%rows, %row)
    %axes = constant{value=i64[2]{0, 1}}()
    %sum = reduce{op=sum, keepdims=false}(%more, %axes)
    %goes_on = elementwise{op=less}(%sum, %most)
    output %goes_on
    output %more
    output %sum
  }
  output %last
  output %sizes
})";

TEST(ControlFlow, WhatDiffersFromRoundToRoundIsASymbol) {
  const Graph graph = parsed(kGrowing);
  ASSERT_TRUE(verify(graph)) << verify(graph).error().to_string();
  const Value* last = graph.outputs()[0].value;
  ASSERT_TRUE(last->shape()[0].as_symbol());
  EXPECT_EQ(graph.symbols()[*last->shape()[0].as_symbol()].source, SymbolSource::computed);
  EXPECT_EQ(last->shape()[1], Expr(2));
  const Tensor inputs[] = {tensor_of({1, 2}, {0, 1}), tensor_of({}, {20})};
  const auto outputs = interpret(graph, inputs);
  ASSERT_TRUE(outputs) << outputs.error().to_string();
  EXPECT_EQ((*outputs)[0].dims(), (Dims{4, 2}));
  EXPECT_EQ(floats((*outputs)[1]), (std::vector<float>{22, 15, 8}));
}

TEST(ControlFlow, OneBodyOfABranchIsRun) {
  const Graph graph = parsed(R"(graph "branches" {
  input %c: bool[]
  input %x: f32[4]
  %y = branch(%c, %x) body {
    input %v: f32[4]
    %b = constant{value=i64[1]{0}}()
    %e = constant{value=i64[1]{2}}()
    %a = constant{value=i64[1]{0}}()
    %r = slice(%v, %b, %e, %a)
    output %r
  } body {
    input %v: f32[4]
    %r = unary{op=neg}(%v)
    output %r
  }
  output %y
})");
  ASSERT_TRUE(verify(graph)) << verify(graph).error().to_string();
  EXPECT_TRUE(graph.outputs()[0].value->shape()[0].as_symbol());
  const Tensor x = tensor_of({4}, {1, 2, 3, 4});
  for (const bool holds : {true, false}) {
    const Tensor inputs[] = {scalar(DType::boolean, holds), x};
    const auto outputs = interpret(graph, inputs);
    ASSERT_TRUE(outputs) << outputs.error().to_string();
    EXPECT_EQ(floats((*outputs)[0]), holds ? (std::vector<float>{1, 2}) : (std::vector<float>{-1, -2, -3, -4}));
  }
}

TEST(ControlFlow, WhatDoesNotFitIsRefused) {
  const auto error_of = [](std::string_view body, std::string_view attributes) {
    const std::string text = fmt::format(R"(graph "g" {{
  input %n: i64[]
  input %x: f32[4]
  %y = loop{}(%n, _, %x) body {{
    input %i: i64[]
    input %c: bool[]
    input %v: f32[4]
{}
  }}
  output %y
}})",
                                         attributes, body);
    const Result<Graph> graph = parse_graph(text);
    return graph ? std::string("accepted") : graph.error().message;
  };
  EXPECT_EQ(error_of("output %c\noutput %v", "{carried=1}"), "accepted");
  EXPECT_NE(error_of("output %v", "{carried=1}").find("1 results, expected 2"), std::string::npos);
  EXPECT_NE(error_of("%h = cast{to=f16}(%v)\noutput %c\noutput %h", "{carried=1}")
                .find("the type and the number of dimensions must stay"),
            std::string::npos);
  EXPECT_NE(error_of("output %c\noutput %v", "{scan_axes=[1], scan_reversed=[0], stack_axes=[0], stack_reversed=[0]}")
                .find("has no axis 1"),
            std::string::npos);
  EXPECT_NE(error_of("output %c\noutput %x", "{carried=1}").find("%x is not defined"), std::string::npos);
}

}  // namespace
}  // namespace lathe::ir
