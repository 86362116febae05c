// SPDX-License-Identifier: Apache-2.0
// Every allocation of the plan's way through the library may fail: an error, no crash, no leak.
#include "robustness/allocation_sweep.h"

#include "lowering/engine_fixture.h"
#include "plan/memory_planner.h"
#include "plan/random_plan.h"
#include "plan/reader.h"
#include "plan/signature.h"

namespace lathe {
namespace {

TEST(AllocationFailure, WritePlan) {
  const plan::OwnedPlan owned = plan::PlanGenerator(1).make(4, 200);
  const std::vector<std::byte> expected = *plan::write_plan(owned.plan);
  EXPECT_GT(sweep_allocations([&] {
              const auto bytes = plan::write_plan(owned.plan);
              EXPECT_TRUE(!bytes || *bytes == expected);
              return bytes.has_value();
            }),
            50);
}

TEST(AllocationFailure, ReadPlan) {
  const plan::OwnedPlan owned = plan::PlanGenerator(1).make(4, 200);
  const std::vector<std::byte> bytes = *plan::write_plan(owned.plan);
  EXPECT_GT(sweep_allocations([&] { return plan::read_plan(bytes, nullptr).has_value(); }), 50);
}

TEST(AllocationFailure, SignPlan) {
  const std::vector<std::byte> bytes = *plan::write_plan(plan::PlanGenerator(1).make(4, 200).plan);
  const plan::KeyPair keys = *plan::make_key_pair();
  EXPECT_GT(sweep_allocations([&] { return plan::sign_plan(bytes, keys.secret_key).has_value(); }), 3);
}

TEST(AllocationFailure, RefusalOfADamagedPlan) {
  std::vector<std::byte> bytes = *plan::write_plan(plan::PlanGenerator(1).make(4, 200).plan);
  bytes[600] ^= std::byte{1};
  sweep_allocations([&] {
    const auto loaded = plan::read_plan(bytes, nullptr);
    return !loaded && loaded.error().code != ErrorCode::internal;
  });
}

TEST(AllocationFailure, PlanMemory) {
  const std::vector<plan::Lifetime> buffers = {{100, 0, 1}, {300, 1, 2}, {200, 2, 5}, {500, 3, 4}, {100, 0, 5}};
  size_t total = 0;
  EXPECT_GT(sweep_allocations([&] { return plan::plan_memory(buffers, &total).size() == buffers.size(); }), 3);
}

constexpr const char* kGraph = R"(graph "g" {
    input %x: f32[1, 4, 6, 6]
    %w = constant{value=f32[8, 4, 3, 3]{~1}}()
    %y = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%x, %w)
    %a = activation{op=sigmoid}(%y)
    %s = elementwise{op=add}(%y, %a)
    output %s
  })";

TEST(AllocationFailure, ParseGraph) {
  EXPECT_GT(sweep_allocations([&] { return ir::parse_graph(kGraph).has_value(); }), 50);
}

TEST(AllocationFailure, BuildPlan) {
  EXPECT_GT(sweep_allocations([&] {
              auto graph = ir::parse_graph(kGraph);
              return graph && build_plan(std::move(*graph), BuildOptions()).has_value();
            }),
            100);
}

TEST(AllocationFailure, LoadAndRun) {
  const auto built = build_plan(*ir::parse_graph(kGraph), native_options(1));
  ASSERT_TRUE(built) << built.error().to_string();
  const auto bytes = std::make_shared<const std::vector<std::byte>>(*plan::write_plan((*built)->plan));
  const auto device = test_device(1);
  const Tensor input = random_tensor(DType::f32, {1, 4, 6, 6}, 1);
  std::vector<float> output(size_t{1} * 8 * 6 * 6);
  EXPECT_GT(sweep_allocations([&] {
              const auto engine = Engine::load(*bytes, bytes, {device, {}});
              if (!engine) return false;
              const auto context = Context::create(*engine);
              return context && (*context)->set_input_dims(0, input.dims()) &&
                     (*context)->set_address(0, const_cast<void*>(input.data())) &&
                     (*context)->set_address(1, output.data()) && (*context)->run();
            }),
            50);
}

}  // namespace
}  // namespace lathe
