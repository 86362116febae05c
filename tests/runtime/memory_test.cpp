// SPDX-License-Identifier: Apache-2.0
#include "fixtures/guarded_memory.h"
#include "runtime/memory_check.h"

namespace lathe {
namespace {

TEST(Memory, LimitsHoldForAllShapes) {
  const auto device = std::make_shared<CountingDevice>(test_device(3));
  const auto load = [&](ir::Graph graph, std::vector<ProfileShapes> profiles) {
    BuildOptions options = native_options(3);
    options.profiles = std::move(profiles);
    const auto built = build_plan(std::move(graph), options);
    EXPECT_TRUE(built) << built.error().to_string();
    return built ? load_engine(*plan::write_plan((*built)->plan), device) : nullptr;
  };
  const auto guarded = [](size_t bytes) {
    const auto memory = std::make_shared<GuardedVector<std::byte>>(bytes);  // ends at a page that faults
    return std::shared_ptr<std::byte>(memory, memory->data());
  };
  expect_limits_to_hold(load, device, guarded, 1e-4);
}

TEST(Memory, AProfileForWhichThereIsNoRoomChangesNothing) {
  const auto device = std::make_shared<CountingDevice>(test_device(2));
  const ir::Graph graph = *ir::parse_graph(hungry_graph(kHungryNetworks[0]));
  BuildOptions options = native_options(2);
  options.profiles = hungry_profiles(graph);
  const auto built = build_plan(graph.clone(), options);
  ASSERT_TRUE(built) << built.error().to_string();
  const auto engine = load_engine(*plan::write_plan((*built)->plan), device);
  const auto context = *Context::create(engine, MemoryPolicy::by_profile);
  const Tensor x = random_tensor(DType::f32, {5, 24, 40}, 1);
  const Tensor expected = run_engine(*context, {&x, 1})[0];
  device->largest = engine->memory_limit(1)->total() - 1;
  ASSERT_GT(device->largest, engine->memory_limit(0)->total());
  const Result<> changed = context->set_profile(1);
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, ErrorCode::out_of_memory);
  EXPECT_EQ(context->profile(), 0u);
  EXPECT_TRUE(context->missing_shapes().empty());
  device->allocations = 0;
  expect_close(run_engine(*context, {&x, 1})[0], expected, 0);
  EXPECT_EQ(device->allocations, 0);  // it has memory
}

TEST(Memory, NoLimitWithoutProfiles) {
  const auto engine = build_engine(R"(graph "g" {
    symbol n in [1, inf]
    input %x: f32[n, 24, 40]
    %t = transpose{perm=[0, 2, 1]}(%x)
    %p = matmul{}(%x, %t)
    %y = matmul{}(%p, %x)
    output %y
  })",
                                   native_options());
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->memory_limit(0), nullptr);
  const auto context = *Context::create(engine, MemoryPolicy::largest);  // as shapes need it
  const Tensor x = random_tensor(DType::f32, {3, 24, 40}, 1);
  EXPECT_EQ(run_engine(*context, {&x, 1})[0].dims(), (Dims{3, 24, 40}));
}

}  // namespace
}  // namespace lathe
