// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/kernel_runner.h"
#include "kernels/cpu/open_device.h"

namespace lathe::cpu {
namespace {

void expect_matches(const Program& program, std::vector<TestTensor>& in, std::vector<TestTensor>& out) {
  const auto kernel = make_kernel("pointwise", {}, &program);
  ASSERT_TRUE(kernel);
  std::vector<TensorArg> inputs, outputs;
  for (TestTensor& t : in) inputs.push_back(t.arg);
  for (TestTensor& t : out) outputs.push_back(t.arg);
  for (const int threads : {1, 3}) {
    for (TestTensor& t : out) t.for_each([](const Dims&, float& x) { x = 777; });
    run_kernel(*kernel, inputs, outputs, threads);
    for (size_t k = 0; k < out.size(); ++k) {
      EXPECT_TRUE(out[k].gaps_untouched());
      bool ok = true;
      out[k].for_each([&](const std::vector<int64_t>& index, float& actual) {
        std::vector<float> args, expected(out.size());
        for (TestTensor& t : in) args.push_back(t.at(index));
        evaluate(program, args, expected);
        ok = ok && std::abs(actual - expected[k]) <= 1e-5f * std::max(1.0f, std::abs(expected[k]));
      });
      EXPECT_TRUE(ok) << to_text(program) << " output " << k << ", " << threads << " threads";
    }
  }
}

TEST(Pointwise, LayoutsAndBroadcasts) {
  const Program program = program_of("in=4; r4=add r0 r1; r5=mul r4 r2; r6=sub r5 r3; r7=silu r6; out r7");
  const std::vector<int> nchw = {0, 1, 2, 3}, nhwc = {0, 2, 3, 1};
  std::mt19937 random(1);
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{{1, 1, 1, 1},
                                                                            {2, 3, 5, 7},
                                                                            {1, 64, 14, 14},
                                                                            {1, 600, 3, 3},
                                                                            {3, 16, 1, 1},
                                                                            {1, 1, 33, 65},
                                                                            {2, 17, 40, 40},
                                                                            {1, 8, 0, 4}})
    for (const auto& a : {nchw, nhwc})
      for (const auto& b : {nchw, nhwc})
        for (const int64_t pitch : {0, 5}) {
          std::vector<TestTensor> in, out;
          in.push_back(std::move(TestTensor(dims, a, pitch).fill(random)));
          in.push_back(std::move(TestTensor({1, dims[1], 1, 1}).fill(random)));
          in.push_back(std::move(TestTensor(dims, b).fill(random)));
          in.push_back(std::move(TestTensor({dims[2], 1}).fill(random)));  // lower rank: aligned at the last
          out.emplace_back(dims, b, pitch);
          expect_matches(program, in, out);
        }
}

// Pictures become levels whose channels lie together, with or without room for a fourth.
TEST(Pointwise, LevelsOfFewChannels) {
  const Program program =
      program_of("in=1; r1=affine r0 90 -0; r2=round r1; r3=affine r2 1 100; r4=clip r3 0 255; out r4");
  std::mt19937 random(3);
  for (const int64_t channels : {1, 2, 3, 4, 5})
    for (const int64_t width : {1, 40, 70})
      for (const int64_t room : {0, 1, 2}) {
        const Dims dims{2, channels, 33, width};
        const TestTensor in = std::move(TestTensor(dims).fill(random));
        const TestTensor out(dims, {0, 2, 3, 1}, room, DType::u8);
        run_kernel(*make_kernel("pointwise", {}, &program), {in.arg}, {out.arg}, 2);
        const Tensor levels = out.checked_content();
        const uint8_t* level = levels.as<uint8_t>();
        in.for_each([&](const Dims&, float x) {
          float expected = 0;
          evaluate(program, {&x, 1}, {&expected, 1});
          ASSERT_EQ(static_cast<float>(*level++), expected) << channels << " channels, width " << width;
        });
      }
}

TEST(Pointwise, ManyRanksAndOutputs) {
  const Program program = program_of("in=2; r2=add r0 r1; r3=mul r0 r1; out r2 r3 r0");
  std::mt19937 random(2);
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{{},
                                                                            {1},
                                                                            {5000},
                                                                            {2, 3},
                                                                            {1, 2, 1, 3, 1, 2, 1, 4},
                                                                            {2, 2, 2, 2, 2, 2, 2, 2},
                                                                            {100, 1},
                                                                            {1, 4097},
                                                                            {3, 2000}}) {
    std::vector<TestTensor> in, out;
    in.push_back(std::move(TestTensor(dims).fill(random)));
    in.push_back(std::move(TestTensor(Dims{}).fill(random)));
    for (int k = 0; k < 3; ++k) out.emplace_back(dims, std::vector<int>{}, k);
    expect_matches(program, in, out);
  }
}

TEST(Pointwise, InPlace) {
  const Program program = program_of("in=2; r2=add r0 r1; r3=mul r2 r0; out r3");
  const auto kernel = make_kernel("pointwise", {}, &program);
  for (const int threads : {1, 3}) {
    TestTensor a({7, 1000}), b({7, 1000});
    std::ranges::fill(a.floats(), 3.0f);
    std::ranges::fill(b.floats(), 2.0f);
    run_kernel(*kernel, {a.arg, b.arg}, {a.arg}, threads);
    for (const float x : a.floats()) ASSERT_EQ(x, 15.0f);
  }
}

// Casts are steps of their own on CPUs.
TEST(Pointwise, RefusesProgramsThatRound) {
  for (const char* name : {"round_f16", "round_bf16"}) {
    const Program program = *parse_program(fmt::format("in=1; r1={} r0; out r1", name));
    StepRecord record;
    record.kernel = "pointwise", record.program = &program;
    const auto kernel = make_kernel(record);
    ASSERT_FALSE(kernel);
    EXPECT_EQ(kernel.error().message, "kernel 'pointwise' has no instruction for casts");
  }
}

TEST(Pointwise, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("pointwise");
  ASSERT_NE(factory, nullptr);
  EXPECT_FALSE(factory(Record{}));
  const Program program = program_of("in=2; r2=add r0 r1; out r2");
  const int64_t param = 1;
  EXPECT_FALSE(factory(Record{{&param, 1}, &program}));
  const auto kernel = make_kernel("pointwise", {}, &program);
  TestTensor a({2, 3}), b({3}), c({2}), d({1, 2, 3}), e({2, 3});
  EXPECT_TRUE(kernel->check(std::vector{a.arg, b.arg}, std::vector{e.arg}));
  EXPECT_FALSE(kernel->check(std::vector{a.arg}, std::vector{e.arg}));
  EXPECT_FALSE(kernel->check(std::vector{a.arg, c.arg}, std::vector{e.arg}));
  EXPECT_FALSE(kernel->check(std::vector{a.arg, d.arg}, std::vector{e.arg}));
  b.arg.dtype = DType::f16;
  EXPECT_FALSE(kernel->check(std::vector{a.arg, b.arg}, std::vector{e.arg}));
  e.arg.strides[1] = 0;
  EXPECT_FALSE(kernel->check(std::vector{a.arg, a.arg}, std::vector{e.arg}));
}

}  // namespace
}  // namespace lathe::cpu
