// SPDX-License-Identifier: Apache-2.0
// What goes wrong while nodes are built is told once, by whoever had them built.
#include <gtest/gtest.h>

#include "ir/builder.h"
#include "passes/rewrite.h"

namespace lathe {
namespace {

TEST(GraphBuilder, NamesConstantsApartFromTheOpThatReadsThem) {
  ir::Graph graph;
  ir::Value* x = *graph.add_input("x", DType::f32, Dims{2, 3});
  ir::GraphBuilder b(graph, {"flat", {"layer"}, {}}, nullptr, ".constant");
  const ir::Node* reshape = b.reshape(x, {6})->producer();
  EXPECT_EQ(reshape->name(), "flat");
  EXPECT_EQ(reshape->input(1)->producer()->name(), "flat.constant");
  EXPECT_EQ(reshape->origin(), std::vector<std::string>{"layer"});
  EXPECT_FALSE(b.failed());
}

TEST(GraphBuilder, DoesNothingAfterItsFirstError) {
  ir::Graph graph;
  ir::Value* x = *graph.add_input("x", DType::f32, Dims{2, 3});
  ir::GraphBuilder b(graph, {"bad", {}, {}});
  ir::Value* wrong = b.reshape(x, {5});
  ASSERT_TRUE(b.failed());
  const std::string message = b.error()->message;
  EXPECT_NE(message.find("'bad"), std::string::npos) << message;
  const size_t nodes = graph.num_nodes();
  EXPECT_EQ(b.add_all(SplitAttrs(), {b.mul(wrong, b.scalar(2, DType::f32))}, 2).size(), 2u);
  EXPECT_EQ(b.cast(wrong, DType::f16), wrong);
  b.set_error(Error(ErrorCode::internal, "another", {}));
  EXPECT_EQ(graph.num_nodes(), nodes);
  EXPECT_EQ(b.error()->message, message);
}

TEST(GraphBuilder, ATensorThatCouldNotBeMadeIsItsError) {
  ir::Graph graph;
  ir::GraphBuilder b(graph, {});
  b.constant(fail(ErrorCode::internal, "no memory"));
  ASSERT_TRUE(b.failed());
  EXPECT_EQ(b.error()->message, "no memory");
}

TEST(Rewrite, EndsThePassWithItsErrorWhateverTheRuleAnswers) {
  ir::Graph graph;
  ir::Value* x = *graph.add_input("x", DType::f32, Dims{2, 3});
  graph.add_output(*graph.add_value(IdentityAttrs(), {x}), "y");
  static constexpr Rule finishes = {"", OpKind::identity,
                                    [](Rewrite& r) { return r.finish(r.reshape(r.input(0), {5})); }};
  static constexpr Rule gives_up = {"", OpKind::identity, [](Rewrite& r) -> Result<bool> {
                                      r.reshape(r.input(0), {5});
                                      return false;
                                    }};
  PassContext context;
  for (const Rule& rule : {finishes, gives_up}) {
    const Result<bool> changed = apply_rules(graph, context, {&rule, 1});
    ASSERT_FALSE(changed);
    EXPECT_NE(changed.error().message.find("reshape"), std::string::npos) << changed.error().message;
    EXPECT_EQ(graph.outputs()[0].value->producer()->kind(), OpKind::identity);
  }
}

}  // namespace
}  // namespace lathe
