// SPDX-License-Identifier: Apache-2.0
// What the plan format can say and this runtime does not do is refused when an engine is loaded, by name.
#include "lowering/engine_fixture.h"
#include "plan/random_plan.h"
#include "plan/writer.h"

namespace lathe {
namespace {

Result<std::shared_ptr<const Engine>> load(const plan::Plan& plan, std::shared_ptr<Device> device) {
  LATHE_ASSIGN(const std::vector<std::byte> bytes, plan::write_plan(plan));
  return Engine::load(bytes, nullptr, {std::move(device), {}});
}

TEST(PlanKinds, SequencesAreRefusedByName) {
  plan::OwnedPlan owned = plan::PlanGenerator(1).make(2, 8);
  owned.plan.target = test_device()->target();
  owned.plan.tensors.push_back(
      {"tokens", DType::i64, {Expr::symbol(2)}, {}, plan::StorageKind::dynamic, 0, 0, plan::ValueKind::sequence});
  owned.plan.dynamic_slots = 1;
  const auto engine = load(owned.plan, test_device());
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, ErrorCode::plan_version);
  EXPECT_NE(engine.error().message.find("'tokens'"), std::string::npos) << engine.error().message;
}

TEST(PlanKinds, CodeForOtherTargetsIsListed) {
  plan::OwnedPlan owned = plan::PlanGenerator(3).make(3, 8, 1);
  owned.plan.target = test_device()->target();
  const auto engine = load(owned.plan, test_device());
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, ErrorCode::plan_target);
  EXPECT_NE(engine.error().message.find("binary for cuda-sm_90"), std::string::npos) << engine.error().message;
}

TEST(PlanKinds, DetachedWeightsAreSupplied) {
  const char* const kText = R"(graph "g" {
    input %x: f32[3]
    %w = constant{value=f32[3]{1, 2, 3}}()
    %y = elementwise{op=add}(%x, %w)
    output %y
  })";
  const auto built = build_plan(*ir::parse_graph(kText), plain_options());
  ASSERT_TRUE(built) << built.error().to_string();
  plan::Plan& plan = (*built)->plan;
  ASSERT_EQ(plan.constants.size(), 1u);
  EXPECT_EQ(plan.constants[0].name, "w");
  EXPECT_EQ(plan.constants[0].digest, digest_of(plan.pieces[0].bytes));
  const auto whole = plan::read_plan(*plan::write_plan(plan), nullptr);
  ASSERT_TRUE(whole) << whole.error().to_string();
  plan.pieces.clear();
  plan.detached = plan::detach(whole->plan.weights);
  const std::vector<std::byte> bytes = *plan::write_plan(plan);
  EXPECT_FALSE(Engine::load(bytes, nullptr, {test_device(1), {}}));
  EngineOptions options{test_device(1), {}};
  options.read.weights = plan::Weights{whole->plan.weights, nullptr};
  const auto engine = Engine::load(bytes, nullptr, options);
  ASSERT_TRUE(engine) << engine.error().to_string();
  const auto context = Context::create(*engine);
  ASSERT_TRUE(context) << context.error().to_string();
  const std::vector<Tensor> inputs = {Tensor::of<float>({3}, {10, 20, 30})};
  const std::vector<Tensor> outputs = run_engine(**context, inputs);
  expect_close(outputs[0], Tensor::of<float>({3}, {11, 22, 33}), 0);
}

}  // namespace
}  // namespace lathe
