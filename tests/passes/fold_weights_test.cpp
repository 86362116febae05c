// SPDX-License-Identifier: Apache-2.0
// Large constants are computed by several threads, and are what one thread makes of them.
#include <gtest/gtest.h>

#include <algorithm>

#include "passes/pass.h"

namespace lathe {
namespace {

// Weights that are narrowed, turned and joined, each of at least a mebibyte; %small comes of one that is none.
ir::Graph weights() {
  std::string text = "graph g {\n  input %x: f16[2, 1024]\n";
  for (int i = 0; i < 6; ++i)
    text += fmt::format(
        "  %w{0} = constant{{value=f32[1024, {1}]{{~{2}}}}}()\n"
        "  %n{0} = cast{{to=f16}}(%w{0})\n"
        "  %t{0} = transpose{{perm=[1, 0]}}(%n{0})\n",
        i, 640 + 64 * i, i + 1);
  text += "  %s = constant{value=f32[2, 3]{~9}}()\n  %small = cast{to=f16}(%s)\n  output %small \"small\"\n";
  text += "  %all = concat{axis=0}(%t0, %t1, %t2, %t3, %t4)\n  output %all \"all\"\n  output %t5 \"last\"\n";
  return *ir::parse_graph(text + "  output %x \"x\"\n}");
}

TEST(FoldWeights, GivesTheSameInThreads) {
  ir::Graph one = weights(), many = weights();
  PassContext context;
  ASSERT_TRUE(*run_pass("fold_constants", one, context));
  context.threads = 4;
  ASSERT_TRUE(*run_pass("fold_constants", many, context));
  for (const auto& node : many.nodes()) EXPECT_TRUE(node->is(OpKind::constant)) << node->name();
  ASSERT_EQ(one.outputs().size(), many.outputs().size());
  for (size_t i = 0; i < one.outputs().size(); ++i) {
    const Tensor *expected = one.outputs()[i].value->constant(), *content = many.outputs()[i].value->constant();
    ASSERT_EQ(expected == nullptr, content == nullptr) << i;
    if (!expected) continue;
    EXPECT_EQ(content->dims(), expected->dims()) << i;
    EXPECT_TRUE(std::ranges::equal(content->raw(), expected->raw())) << i;
  }
  EXPECT_FALSE(*run_pass("fold_constants", many, context));
}

// What fails on its values stays, for it fails when it is run.
TEST(FoldWeights, LeavesWhatFails) {
  ir::Graph graph = *ir::parse_graph(R"(graph g {
  %w = constant{value=f32[4, 262144]{~1}}()
  %i = constant{value=i64[2]{0, 9}}()
  %g = gather{axis=0}(%w, %i)
  output %g "g"
})");
  PassContext context;
  context.threads = 4;
  EXPECT_FALSE(*run_pass("fold_constants", graph, context));
}

}  // namespace
}  // namespace lathe
