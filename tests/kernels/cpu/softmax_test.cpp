// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/kernel_runner.h"
#include "kernels/cpu/softmax/softmax.h"

namespace lathe::cpu {
namespace {

void expect_matches(TestTensor& in, TestTensor& out, int axis, bool log) {
  std::vector<double> expected;
  in.for_each([&](const std::vector<int64_t>& at, float& x) {
    std::vector<int64_t> other = at;
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < in.arg.dims[axis]; ++i) {
      other[static_cast<size_t>(axis)] = i;
      max = std::max(max, static_cast<double>(in.at(other)));
    }
    for (int64_t i = 0; i < in.arg.dims[axis]; ++i) {
      other[static_cast<size_t>(axis)] = i;
      sum += std::exp(in.at(other) - max);
    }
    expected.push_back(log ? x - max - std::log(sum) : std::exp(x - max) / sum);
  });
  const auto kernel = make_kernel("softmax", SoftmaxParams{axis, log});
  for (const int threads : {1, 3}) {
    run_kernel(*kernel, {in.arg}, {out.arg}, threads);
    EXPECT_TRUE(out.gaps_untouched());
    auto wanted = expected.begin();
    in.for_each([&](const std::vector<int64_t>& at, float&) {
      ASSERT_NEAR(out.at(at), *wanted, 1e-6 * std::max(1.0, std::abs(*wanted))) << "axis " << axis << " log " << log;
      ++wanted;
    });
  }
}

TEST(Softmax, EveryAxisAndLayout) {
  std::mt19937 random(4);
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{
           {2, 3, 4, 5}, {1, 70, 3, 7}, {2, 16, 1, 100}, {3, 1, 33, 2}, {1, 1, 2, 129}, {1, 0, 2, 2}, {1, 1, 1, 1}})
    for (int axis = 0; axis < 4; ++axis)
      for (const bool nhwc : {false, true})
        for (const bool same : {false, true})
          for (const bool log : {false, true}) {
            const std::vector<int> order = nhwc ? std::vector<int>{0, 2, 3, 1} : std::vector<int>{};
            TestTensor in(dims, order, 3), out(dims, same ? order : std::vector<int>{3, 0, 1, 2}, 2);
            expect_matches(in.fill(random, 5), out, axis, log);
          }
}

// The epilogue is what the program makes of the plain result, to the bit.
TEST(Softmax, EpilogueOnEveryAxisAndLayout) {
  std::mt19937 random(5);
  const Program program =
      program_of("in=1; r1=constant 0.004; r2=div r0 r1; r3=round r2; r4=clip r3 0 255; r5=affine r4 0.004 -0; out r5");
  for (const std::vector<int64_t>& dims :
       std::vector<std::vector<int64_t>>{{2, 3, 4, 5}, {2, 16, 1, 100}, {1, 0, 2, 2}})
    for (int axis = 0; axis < 4; ++axis)
      for (const bool same : {false, true}) {
        TestTensor in(dims, {}, 3), out(dims, same ? std::vector<int>{} : std::vector<int>{3, 0, 1, 2}, 2);
        TestTensor plain(dims, same ? std::vector<int>{} : std::vector<int>{3, 0, 1, 2}, 2);
        in.fill(random, 3);
        run_kernel(*make_kernel("softmax", SoftmaxParams{axis}), {in.arg}, {plain.arg}, 1);
        for (const int threads : {1, 3}) {
          run_kernel(*make_kernel("softmax", SoftmaxParams{axis}, &program), {in.arg}, {out.arg}, threads);
          EXPECT_TRUE(out.gaps_untouched());
          in.for_each([&](const std::vector<int64_t>& at, float&) {
            const float nearest = std::nearbyint(plain.at(at) / 0.004f);
            ASSERT_EQ(out.at(at), std::min(nearest, 255.0f) * 0.004f);
          });
        }
      }
}

TEST(Softmax, InPlaceAndSpecialValues) {
  TestTensor x({2, 50});
  for (float& v : x.floats()) v = 3;
  x.floats()[7] = -INFINITY;
  x.floats()[60] = std::nanf("");
  run_kernel(*make_kernel("softmax", SoftmaxParams{1}), {x.arg}, {x.arg}, 1);
  EXPECT_EQ(x.floats()[7], 0);
  EXPECT_NEAR(x.floats()[0], 1.0 / 49, 1e-8);
  EXPECT_TRUE(std::isnan(x.floats()[99]));
}

TEST(Softmax, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("softmax");
  for (const std::vector<int64_t>& params :
       std::vector<std::vector<int64_t>>{{}, {0}, {8, 0}, {-1, 0}, {0, 2}, {0, 0, 0}})
    EXPECT_FALSE(factory(Record{params, nullptr}));
  const Program sum = program_of("in=2; r2=add r0 r1; out r2");
  const std::vector<int64_t> axis_and_log = {0, 0};
  EXPECT_FALSE(factory(Record{axis_and_log, &sum}));
  TestTensor a({2, 3}), b({2, 4});
  EXPECT_FALSE(make_kernel("softmax", SoftmaxParams{1})->check(std::vector{a.arg}, std::vector{b.arg}));
  EXPECT_FALSE(make_kernel("softmax", SoftmaxParams{2})->check(std::vector{a.arg}, std::vector{a.arg}));
  EXPECT_TRUE(make_kernel("softmax", SoftmaxParams{1})->check(std::vector{a.arg}, std::vector{a.arg}));
}

}  // namespace
}  // namespace lathe::cpu
