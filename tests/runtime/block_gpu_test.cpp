// SPDX-License-Identifier: Apache-2.0
// Captured loops on the GPU that LATHE_TEST_DEVICE names; tests/device/cuda/blocks_test.cpp has more of them, on the
// stand-in driver.
#include "runtime/block_plans.h"

namespace lathe {
namespace {

using Id = plan::TensorId;
constexpr Id kNone = plan::kNoTensor;

// add(a, b, y), scaled(a, round, y): a thread for each element.
constexpr const char* kAssembly = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 y) {
  .reg .b64 %p<4>; .reg .b32 %t; .reg .f32 %f<3>;
  ld.param.u64 %p0, [a]; ld.param.u64 %p1, [b]; ld.param.u64 %p2, [y];
  mov.u32 %t, %tid.x; mul.wide.u32 %p3, %t, 4;
  add.s64 %p0, %p0, %p3; add.s64 %p1, %p1, %p3; add.s64 %p2, %p2, %p3;
  ld.global.f32 %f0, [%p0]; ld.global.f32 %f1, [%p1];
  add.f32 %f2, %f0, %f1; st.global.f32 [%p2], %f2;
  ret;
}
.visible .entry scaled(.param .u64 a, .param .u64 round, .param .u64 y) {
  .reg .b64 %p<5>; .reg .b32 %t; .reg .f32 %f<3>;
  ld.param.u64 %p0, [a]; ld.param.u64 %p1, [round]; ld.param.u64 %p2, [y];
  mov.u32 %t, %tid.x; mul.wide.u32 %p3, %t, 4;
  add.s64 %p0, %p0, %p3; add.s64 %p2, %p2, %p3;
  ld.global.f32 %f0, [%p0]; ld.global.s64 %p4, [%p1]; cvt.rn.f32.s64 %f1, %p4;
  mul.f32 %f2, %f0, %f1; st.global.f32 [%p2], %f2;
  ret;
}
)";

constexpr int64_t kElements = 32;

// The sum of round * slice, stacked, over slices of an axis.
struct Sums : PlanMaker {
  std::vector<std::byte> code;
  Sums(uint32_t axis, bool reversed) {
    const std::span text(reinterpret_cast<const std::byte*>(kAssembly), std::strlen(kAssembly) + 1);
    code.assign(text.begin(), text.end());
    plan.codes = {{{{CodeForm::assembly, "cuda-sm_80", code}}}};
    const Id x = input("x", DType::f32, {kElements, kElements});
    plan.tensors[x].dims[axis] = dimension("n", 0, axis);
    const Id y = output("y", DType::f32, plan.tensors[x].dims), z = output("z", DType::f32, {kElements});
    const Id zero = floats({kElements}, std::vector<float>(kElements));
    const auto row = [&](const char* name) { return buffer(name, DType::f32, {kElements}); };
    const Id sum = row("sum"), slice = row("slice"), product = row("product"), result = row("result");
    const Id round = buffer("round", DType::i64, {});
    const size_t at = loop(1, {kNone, kNone, zero, x}, {z, y});
    get(at).scanned = {{axis, reversed}};
    get(at).stacked = {{axis, reversed}};
    begin_body(at, {round, kNone, sum, slice});
    launch("scaled", {slice, round}, product);
    launch("add", {sum, product}, result);
    end_body(at, {kNone, result, result});
  }
  void launch(const char* entry, std::vector<Id> inputs, Id to) {
    Launch launch;
    launch.entry = entry;
    launch.block = kElements;
    launch.args = {{LaunchArg::input, 0, {}}, {LaunchArg::input, 1, {}}, {LaunchArg::output, 0, {}}};
    step(plan::DeviceLaunches{entry, "", {launch}, 0}, entry, std::move(inputs), {to});
  }
};

TEST(BlockGpu, CapturedLoopsFollowInputsAndShapes) {
  const std::shared_ptr<Device> gpu = test_gpu();
  if (!gpu) GTEST_SKIP() << "LATHE_TEST_DEVICE names no GPU";
  for (const uint32_t axis : {0, 1})
    for (const bool reversed : {false, true}) {
      Sums maker(axis, reversed);
      const auto context = maker.context(gpu);
      ASSERT_TRUE(context);
      for (const int64_t n : {5, 100, 1, 0, 5})
        for (uint32_t run = 0; run < 4; ++run) {
          Dims dims = {kElements, kElements};
          dims[axis] = n;
          const Tensor x = random_tensor(DType::f32, dims, run + 1);
          std::vector<float> sum(kElements), all(static_cast<size_t>(n * kElements));
          for (int64_t round = 0; round < n; ++round)
            for (int64_t k = 0; k < kElements; ++k) {
              const int64_t i = reversed ? n - 1 - round : round;
              const auto place = static_cast<size_t>(axis == 0 ? i * kElements + k : k * n + i);
              sum[static_cast<size_t>(k)] += static_cast<const float*>(x.data())[place] * static_cast<float>(round);
              all[place] = sum[static_cast<size_t>(k)];
            }
          const std::vector<Tensor> outputs = run_engine(*context, {&x, 1});
          expect_close(outputs[0], floats(dims, all), 1e-6);
          expect_close(outputs[1], floats(sum), 1e-6);
        }
    }
}

}  // namespace
}  // namespace lathe
