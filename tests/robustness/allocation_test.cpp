// SPDX-License-Identifier: Apache-2.0
// Every allocation of the plan's way through the library may fail: an error, no crash, no leak.
#include "robustness/allocation_sweep.h"

#include "plan/memory_planner.h"
#include "plan/random_plan.h"
#include "plan/reader.h"
#include "plan/signing.h"
#include "runtime/block_plans.h"

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
  const plan::SecretKey key = *plan::SecretKey::make();
  EXPECT_GT(sweep_allocations([&] { return plan::sign_plan(bytes, key).has_value(); }), 3);
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

// A list grows by the rounds' numbers, which are stacked as well, until one is 20; values change places.
struct AllKindsOfValues : PlanMaker {
  AllKindsOfValues() {
    const Id most = input("most", DType::i64, {1});
    const Expr size = computed("size"), before = computed("before"), length = computed("length");
    const Id y = output("y", DType::i64, {size}), z = output("z", DType::i64, {length, 1});
    const Id first = constant<int64_t>(DType::i64, {1}, {-1}), other = constant<int64_t>(DType::i64, {1}, {-2});
    const Id yes = truth(true), round = buffer("round", DType::i64, {1}),
             goes_on = buffer("goes on", DType::boolean, {1});
    const Id a = buffer("a", DType::i64, {1}), b = buffer("b", DType::i64, {1});
    const Id list = slot("list", DType::i64, {before}), longer = slot("longer", DType::i64, {size});
    const size_t at = loop(3, {kNone, yes, first, first, other}, {longer, kNone, kNone, z});
    get(at).stacked = {{0, true}};
    begin_body(at, {round, kNone, list, a, b});
    evaluate("concat", "axis=0", {list, round}, {longer});
    elementwise("less", round, most, goes_on);
    end_body(at, {goes_on, longer, b, a, round});
    const size_t branch = block(plan::BlockKind::branch, {yes}, {y});
    begin_body(branch, {});
    end_body(branch, {longer});
    begin_body(branch, {});
    end_body(branch, {first});
  }
};

TEST(AllocationFailure, RunBlocks) {
  AllKindsOfValues maker;
  const auto engine = maker.load(test_device(1));
  ASSERT_TRUE(engine) << engine.error().to_string();
  int64_t most = 20, list[22] = {}, rounds[21] = {};
  const auto run = [&]() -> Result<> {
    LATHE_ASSIGN(const std::unique_ptr<Context> context, Context::create(*engine));
    LATHE_TRY(context->set_address(0, &most));
    LATHE_TRY(context->set_output_allocator(
        1, [&](size_t bytes, const Dims&) { return bytes == sizeof(list) ? list : nullptr; }));
    LATHE_TRY(context->set_output_allocator(
        2, [&](size_t bytes, const Dims&) { return bytes == sizeof(rounds) ? rounds : nullptr; }));
    return context->run();
  };
  EXPECT_GT(sweep_allocations([&] {
              if (!run()) return false;
              for (int64_t i = 0; i < 21; ++i) {
                EXPECT_EQ(list[i + 1], i);
                EXPECT_EQ(rounds[i], 20 - i);
              }
              return true;
            }),
            100);
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
