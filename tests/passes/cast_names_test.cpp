// SPDX-License-Identifier: Apache-2.0
// Casts that passes insert are named after what they cast and its new type, whichever pass inserts them.
#include <gtest/gtest.h>

#include "passes/pins.h"

namespace lathe {
namespace {

std::vector<std::string> names_of_casts(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const auto& node : graph.nodes())
    if (node->is(OpKind::cast)) names.push_back(node->output()->name());
  return names;
}

ir::Graph relu_of(const char* type) {
  return *ir::parse_graph(fmt::format(R"(graph "g" {{
  input %x: {0}[2, 3]
  %y = activation{{op=relu}}(%x)
  output %y
}})",
                                      type));
}

using Names = std::vector<std::string>;

TEST(CastNames, AreThoseOfTheValueAndTheType) {
  ir::Graph narrowed = relu_of("f32");
  PassContext narrowing;
  narrowing.precision = DType::f16;
  narrowing.arithmetic.narrow_floats = true;
  ASSERT_TRUE(*run_pass("lower_precision", narrowed, narrowing));
  EXPECT_EQ(names_of_casts(narrowed), (Names{"x_f16", "y_f32"}));

  ir::Graph widened = relu_of("bf16");
  PassContext widening;
  widening.arithmetic.narrow_floats = false;
  ASSERT_TRUE(*run_pass("widen_floats", widened, widening));
  EXPECT_EQ(names_of_casts(widened), (Names{"x_f32", "y_bf16"}));
}

TEST(CastNames, OfPinsBelongToTheLayer) {
  ir::Graph graph = relu_of("f32");
  const std::string layer = graph.nodes().back()->name();
  PassContext context;
  context.pins = {{layer, std::nullopt, {{0, DType::f16}}}};
  ASSERT_TRUE(apply_pins(graph, context));
  EXPECT_EQ(names_of_casts(graph), (Names{"y_f16", "y_f16_f32"}));
  for (const auto& node : graph.nodes()) EXPECT_EQ(node->origin(), Names{layer}) << node->name();
}

}  // namespace
}  // namespace lathe
