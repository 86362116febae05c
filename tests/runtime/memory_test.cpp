// SPDX-License-Identifier: Apache-2.0
#include "kernels/guarded_memory.h"
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
    const auto memory = std::make_shared<cpu::GuardedVector<std::byte>>(bytes);  // ends at a page that faults
    return std::shared_ptr<std::byte>(memory, memory->data());
  };
  expect_limits_to_hold(load, device, guarded, 1e-4);
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
