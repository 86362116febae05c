// SPDX-License-Identifier: Apache-2.0
// Bounds of sizes that only running tells.
#include "lowering/engine_fixture.h"

namespace lathe {
namespace {

// The largest extent of dimension 0 of the output, for inputs of these dims.
int64_t bound_of(const std::string& text, std::span<const Dims> inputs) {
  Result<std::unique_ptr<BuiltPlan>> built = build_plan(*ir::parse_graph(text), native_options());
  EXPECT_TRUE(built) << built.error().to_string();
  const auto engine = load_engine(*plan::write_plan((*built)->plan), test_device(1));
  const auto context = *Context::create(engine);
  for (size_t i = 0; i < inputs.size(); ++i) EXPECT_TRUE(context->set_input_dims(i, inputs[i]));
  EXPECT_TRUE(context->memory_bytes());
  const plan::Plan& plan = engine->plan();
  return context->largest(plan.tensors[plan.bindings[inputs.size()].tensor].dims[0]);
}

TEST(Largest, FollowsTheInputsSizes) {
  const std::string compress = R"(graph "g" {
    symbol n in [1, 8]
    input %x: f32[n, 3]
    input %keep: bool[n]
    %y = compress{axis=0, flat=false}(%x, %keep)
    output %y
  })";
  const Dims five[] = {{5, 3}, {5}}, one[] = {{1, 3}, {1}};
  EXPECT_EQ(bound_of(compress, five), 5);
  EXPECT_EQ(bound_of(compress, one), 1);
}

TEST(Largest, OfBoxesThatAreSelected) {
  const std::string selection = R"(graph "g" {
    symbol n in [1, 100]
    input %boxes: f32[2, n, 4]
    input %scores: f32[2, 3, n]
    %most = constant{value=i64[]{7}}()
    %y = non_max_suppression{}(%boxes, %scores, %most)
    output %y
  })";
  const Dims few[] = {{2, 5, 4}, {2, 3, 5}}, many[] = {{2, 50, 4}, {2, 3, 50}};
  EXPECT_EQ(bound_of(selection, few), 2 * 3 * 5);
  EXPECT_EQ(bound_of(selection, many), 2 * 3 * 7);
}

// An input that counts boxes is data, not a shape: the host need not read it.
TEST(Largest, OfBoxesWhoseNumberIsAnInput) {
  const std::string selection = R"(graph "g" {
    input %boxes: f32[2, 5, 4]
    input %scores: f32[2, 3, 5]
    input %most: i64[]
    %y = non_max_suppression{}(%boxes, %scores, %most)
    output %y
  })";
  const Dims inputs[] = {{2, 5, 4}, {2, 3, 5}, {}};
  EXPECT_EQ(bound_of(selection, inputs), 2 * 3 * 5);
}

TEST(Largest, MayHaveNoLimit) {
  const std::string range = R"(graph "g" {
    input %limit: f32[]
    %start = constant{value=f32[]{0}}()
    %step = constant{value=f32[]{1}}()
    %y = range{}(%start, %limit, %step)
    output %y
  })";
  const Dims scalar[] = {{}};
  EXPECT_EQ(bound_of(range, scalar), Range::kUnbounded);
}

}  // namespace
}  // namespace lathe
