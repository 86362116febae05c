// SPDX-License-Identifier: Apache-2.0
// The thread rules: engines are shared, contexts are not; loading, creating and running may all happen at once.
#include <thread>

#include "fixtures/guarded_memory.h"
#include "lowering/engine_fixture.h"

namespace lathe {
namespace {

constexpr int kThreads = 16;
constexpr int kRuns = 20;

const std::string kNetwork = R"(graph "g" {
  symbol n in [1, 4]
  input %x: f32[n, 3, 12, 12]
  %w = constant{value=f32[16, 3, 3, 3]{~1}}()
  %a = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%x, %w)
  %b = activation{op=silu}(%a)
  %w2 = constant{value=f32[16, 16, 3, 3]{~2}}()
  %c = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%b, %w2)
  %d = elementwise{op=add}(%c, %b)
  %p = pooling{op=max, window=[2, 2], stride=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%d)
  %s = cumulative{}(%p, %axis)
  output %s
})";

std::string network() {
  std::string text = kNetwork;
  text.insert(text.find("  %s = cumulative"), "  %axis = constant{value=i64[]{1}}()\n");
  return text;
}

std::vector<std::byte> plan_bytes() {
  Result<std::unique_ptr<BuiltPlan>> built = build_plan(*ir::parse_graph(network()), native_options());
  EXPECT_TRUE(built) << built.error().to_string();
  return *plan::write_plan((*built)->plan);
}

// Bit for bit: results depend neither on the thread nor on who holds the pool.
void expect_same(Context& context, const Tensor& input, const Tensor& expected) {
  for (int run = 0; run < kRuns; ++run) {
    const std::vector<Tensor> outputs = run_engine(context, {&input, 1});
    ASSERT_TRUE(identical(outputs[0], expected));
  }
}

TEST(Threads, LoadCreateAndRunAtOnce) {
  const std::vector<std::byte> bytes = plan_bytes();
  const std::shared_ptr<Device> device = test_device(2);
  const auto shared = load_engine(bytes, device);
  ASSERT_TRUE(shared);
  std::vector<Tensor> inputs, expected;
  for (int64_t n = 1; n <= 4; ++n) {
    inputs.push_back(random_tensor(DType::f32, {n, 3, 12, 12}, static_cast<uint32_t>(n)));
    const auto context = *Context::create(shared);
    expected.push_back(run_engine(*context, {&inputs.back(), 1})[0]);
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const auto engine = t % 2 ? shared : load_engine(bytes, device);
      const auto context = *Context::create(engine);
      const auto i = static_cast<size_t>(t % 4);
      expect_same(*context, inputs[i], expected[i]);
    });
  for (std::thread& thread : threads) thread.join();
}

// S164.
TEST(Threads, OneThreadAndManyGiveTheSameBits) {
  const std::vector<std::byte> bytes = plan_bytes();
  const Tensor input = random_tensor(DType::f32, {3, 3, 12, 12}, 9);
  Tensor first;
  for (int threads : {1, 2, 3, 5}) {
    const auto context = *Context::create(load_engine(bytes, test_device(threads)));
    const Tensor output = run_engine(*context, {&input, 1})[0];
    if (!first.defined()) first = output;
    EXPECT_TRUE(identical(output, first)) << threads << " threads";
  }
}

TEST(Threads, AContextOutlivesEveryOtherHandleToItsEngine) {
  auto engine = load_engine(plan_bytes(), test_device(2));
  auto context = *Context::create(engine);
  engine.reset();
  const Tensor input = random_tensor(DType::f32, {1, 3, 12, 12}, 9);
  EXPECT_EQ(run_engine(*context, {&input, 1})[0].dims(), (Dims{1, 16, 6, 6}));
}

// S119, S133.
TEST(Context, RefusesTooLittleAndMisalignedUserMemory) {
  const auto engine = load_engine(plan_bytes(), test_device(1));
  const auto context = *Context::create(engine, MemoryPolicy::user);
  const Tensor input = random_tensor(DType::f32, {2, 3, 12, 12}, 9);
  ASSERT_TRUE(context->set_input_dims(0, input.dims()));
  ASSERT_TRUE(context->set_address(0, const_cast<void*>(input.data())));
  const size_t needed = *context->memory_bytes();
  ASSERT_GT(needed, 0u);
  Tensor memory = *Tensor::allocate(DType::u8, {static_cast<int64_t>(needed) + 64});
  Tensor output = *Tensor::allocate(DType::f32, {2, 16, 6, 6});
  ASSERT_TRUE(context->set_address(1, output.mutable_data()));
  EXPECT_EQ(context->set_memory(memory.mutable_as<std::byte>() + 1, needed).error().code, ErrorCode::invalid_argument);
  ASSERT_TRUE(context->set_memory(memory.mutable_data(), needed - 1));
  EXPECT_EQ(context->run().error().code, ErrorCode::memory_too_small);
  GuardedVector<std::byte> enough(needed);  // behind which nothing may be touched
  ASSERT_TRUE(context->set_memory(enough.data(), needed));
  const Result<> ran = context->run();
  EXPECT_TRUE(ran) << ran.error().to_string();
  const auto owner = *Context::create(engine);
  EXPECT_TRUE(identical(output, run_engine(*owner, {&input, 1})[0]));
}

}  // namespace
}  // namespace lathe
