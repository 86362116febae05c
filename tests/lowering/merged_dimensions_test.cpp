// SPDX-License-Identifier: Apache-2.0
// Dimensions that constraints tell to be equal, or to expand to each other.
#include "lowering/checked_engine.h"

namespace lathe {
namespace {

// An exporter gave each dimension a name of its own: those that can only be equal become one.
TEST(DimensionsOfInputs, DimensionsThatMustBeEqualAreOne) {
  const Checked checked = build_checked(R"(graph "g" {
    input %x: f32[b, s]
    input %y: f32[c, t]
    %product = matmul{transpose_a=true}(%x, %y)
    %zero = constant{value=i64[1]{0}}()
    %r = unsqueeze(%product, %zero)
    output %r
  })",
                                        {profile({{"x", {{1, 1}, {2, 4}, {8, 9}}}, {"y", {{1, 1}, {2, 5}, {4, 9}}}})});
  const plan::Plan& plan = checked.engine->plan();
  const auto dims = [&](size_t input) { return plan.tensors[plan.bindings[input].tensor].dims; };
  EXPECT_EQ(dims(0)[0], dims(1)[0]);
  EXPECT_NE(dims(0)[1], dims(1)[1]);
  EXPECT_TRUE(plan.constraints.empty());
  EXPECT_EQ(plan.profiles[0].symbols[*dims(0)[0].as_symbol()].max, 4);  // what both have in common
  EXPECT_EQ(*checked.run({{3, 4}, {3, 5}}), std::vector<Dims>({{1, 4, 5}}));
  const Result<std::vector<Dims>> others = checked.run({{3, 4}, {2, 5}});
  ASSERT_FALSE(others);
  EXPECT_NE(others.error().message.find("'y'"), std::string::npos) << others.error().message;
}

// What the application says of dimensions that become one is said of that.
TEST(DimensionsOfInputs, AssertionsOfMergedDimensions) {
  ir::Graph graph = *ir::parse_graph(R"(graph "g" {
    input %x: f32[2, s]
    input %y: f32[3, t]
    %product = matmul{transpose_b=true}(%x, %y)
    output %product
  })");
  const Expr s = graph.inputs()[0]->shape()[1], t = graph.inputs()[1]->shape()[1];
  BuildOptions options = native_options();
  options.asserted = {{Relation::equal, s, t, "assertion 'same'"}, {Relation::at_most, t, 7, "assertion 'few'"}};
  const auto built = build_plan(std::move(graph), options);
  ASSERT_TRUE(built) << built.error().to_string();
  const Checked checked{load_engine(*plan::write_plan((*built)->plan), test_device())};
  EXPECT_EQ(*checked.run({{2, 7}, {3, 7}}), std::vector<Dims>({{2, 3}}));
  EXPECT_FALSE(checked.run({{2, 7}, {3, 6}}));
  expect_refused(checked.run({{2, 8}, {3, 8}}), {"assertion 'few'"});
}

// What is reshaped by the sizes of one input tells that the other's are the same or 1, and that is checked.
TEST(DimensionsOfInputs, ReshapesTellWhatExpands) {
  const Checked checked =
      build_checked(R"(graph "g" {
    input %x: f32[b, s, 4]
    input %y: f32[c, t, 4]
    %sum = elementwise{op=add}(%x, %y)
    %lead = shape{start=0, end=2}(%x)
    %two = constant{value=i64[2]{2, 2}}()
    %to = concat(%lead, %two)
    %r = reshape(%sum, %to)
    output %r
  })",
                    {profile({{"x", {{1, 1, 4}, {2, 4, 4}, {8, 9, 4}}}, {"y", {{1, 1, 4}, {2, 4, 4}, {8, 9, 4}}}})});
  const plan::Plan& plan = checked.engine->plan();
  EXPECT_EQ(plan.tensors[plan.bindings[2].tensor].dims, (Shape{Expr::symbol(0), Expr::symbol(1), 2, 2}));
  EXPECT_EQ(*checked.run({{3, 4, 4}, {3, 4, 4}}), std::vector<Dims>({{3, 4, 2, 2}}));
  EXPECT_EQ(*checked.run({{3, 4, 4}, {1, 4, 4}}), std::vector<Dims>({{3, 4, 2, 2}}));
  expect_refused(checked.run({{1, 4, 4}, {3, 4, 4}}), {"reshape 'r'", "c = b or 1", "3 and 1"});
  expect_refused(checked.run({{3, 4, 4}, {3, 2, 4}}), {"reshape 'r'", "t = s or 1"});
}

TEST(DimensionsOfInputs, TextHoldsWhatExpands) {
  const ir::Graph graph = *ir::parse_graph(R"(graph "g" {
    symbol n in [1, 8]
    symbol m in [1, 8]
    expands m to n
    input %x: f32[m]
    input %y: f32[n]
    %sum = elementwise{op=add}(%x, %y)
    output %sum
  })");
  EXPECT_EQ(graph.find_value("sum")->shape(), graph.find_value("y")->shape());
  EXPECT_TRUE(graph.find_value("sum")->producer()->constraints().empty());
  const std::string text = to_text(graph);
  EXPECT_NE(text.find("  expands m to n\n"), std::string::npos) << text;
  EXPECT_EQ(to_text(*ir::parse_graph(text)), text);
  EXPECT_FALSE(ir::parse_graph(R"(graph "g" { expands m n })"));
}

}  // namespace
}  // namespace lathe
