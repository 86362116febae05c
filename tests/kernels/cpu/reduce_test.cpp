// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/kernel_runner.h"
#include "kernels/cpu/reduce/reduce.h"

namespace lathe::cpu {
namespace {

double reduced(Reduction op, const std::vector<float>& values) {
  double sum = 0, abs = 0, squares = 0, product = 1, max = -INFINITY, min = INFINITY, exps = 0;
  for (const double x : values) {
    sum += x, abs += std::abs(x), squares += x * x, product *= x;
    max = std::isnan(x) || x > max ? x : max;
    min = std::isnan(x) || x < min ? x : min;
  }
  const double shift = std::isfinite(max) ? max : 0;
  for (const double x : values) exps += std::exp(x - shift);
  switch (op) {
    case Reduction::sum:
      return sum;
    case Reduction::mean:
      return sum / static_cast<double>(values.size());
    case Reduction::max:
      return max;
    case Reduction::min:
      return min;
    case Reduction::product:
      return product;
    case Reduction::l1:
      return abs;
    case Reduction::l2:
      return std::sqrt(squares);
    case Reduction::sum_squares:
      return squares;
    case Reduction::log_sum:
      return std::log(sum);
    case Reduction::log_sum_exp:
      return std::log(exps) + shift;
  }
  return 0;
}

// The input's elements by the output element that they belong to, in the order of TestTensor::for_each.
std::vector<std::vector<float>> groups_of(TestTensor& in, uint32_t axes) {
  std::vector<int64_t> extents;
  int64_t count = 1;
  for (int d = 0; d < in.arg.rank; ++d) {
    extents.push_back(axes >> d & 1 ? 1 : in.arg.dims[d]);
    count *= extents.back();
  }
  std::vector<std::vector<float>> groups(static_cast<size_t>(count));
  in.for_each([&](const std::vector<int64_t>& index, float& x) {
    int64_t flat = 0;
    for (size_t d = 0; d < index.size(); ++d) flat = flat * extents[d] + (axes >> d & 1 ? 0 : index[d]);
    groups[static_cast<size_t>(flat)].push_back(x);
  });
  return groups;
}

void expect_matches(Reduction op, uint32_t axes, TestTensor& in, TestTensor& out,
                    const std::vector<std::vector<float>>& groups) {
  const auto kernel = make_kernel("reduce", ReduceParams{op, axes});
  for (const int threads : {1, 3}) {
    out.for_each([](const Dims&, float& x) { x = 777; });
    run_kernel(*kernel, {in.arg}, {out.arg}, threads);
    EXPECT_TRUE(out.gaps_untouched());
    size_t i = 0;
    out.for_each([&](const std::vector<int64_t>&, float& actual) {
      const double expected = reduced(op, groups[i++]);
      if (std::isnan(expected) || std::isinf(expected))
        ASSERT_TRUE(std::isnan(expected) ? std::isnan(actual) : actual == expected) << actual << " for " << expected;
      else
        ASSERT_NEAR(actual, expected, 3e-6 * std::max(1.0, std::abs(expected)))
            << "op " << static_cast<int>(op) << " axes " << axes;
    });
  }
}

TEST(Reduce, EveryOperationAxesAndLayout) {
  std::mt19937 random(9);
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{
           {2, 3, 4, 5}, {1, 70, 7, 7}, {3, 1, 33, 2}, {2, 19, 1, 35}, {1, 1, 1, 1}, {2, 300, 3, 2}})
    for (uint32_t axes = 0; axes < 16; ++axes)
      for (const bool nhwc : {false, true}) {
        TestTensor in(dims, nhwc ? std::vector<int>{0, 2, 3, 1} : std::vector<int>{}, nhwc ? 3 : 0);
        in.fill(random, 0.5f, 1);
        const auto groups = groups_of(in, axes);
        for (const bool keep : {true, false}) {
          std::vector<int64_t> out_dims;
          for (size_t d = 0; d < 4; ++d)
            if (!(axes >> d & 1))
              out_dims.push_back(dims[d]);
            else if (keep)
              out_dims.push_back(1);
          TestTensor out(out_dims, {}, 1);
          for (int op = 0; op <= 9; ++op)
            if (static_cast<Reduction>(op) != Reduction::product || out.arg.volume() > 20)
              expect_matches(static_cast<Reduction>(op), axes, in, out, groups);
        }
      }
}

TEST(Reduce, LongSumsStayAccurate) {
  TestTensor in({1, 3000000}), out({1, 1}), columns({2000000, 2}), two({1, 2});
  for (float& x : in.floats()) x = 0.1f;
  for (float& x : columns.floats()) x = 0.1f;
  run_kernel(*make_kernel("reduce", ReduceParams{Reduction::sum, 2}), {in.arg}, {out.arg}, 1);
  EXPECT_NEAR(out.floats()[0], 3000000 * 0.1f, 0.1);
  run_kernel(*make_kernel("reduce", ReduceParams{Reduction::sum, 1}), {columns.arg}, {two.arg}, 1);
  EXPECT_NEAR(two.floats()[1], 2000000 * 0.1f, 2);
}

TEST(Reduce, SpecialValues) {
  TestTensor in({2, 40}), out({2, 1});
  for (float& x : in.floats()) x = -INFINITY;
  run_kernel(*make_kernel("reduce", ReduceParams{Reduction::log_sum_exp, 2}), {in.arg}, {out.arg}, 1);
  EXPECT_EQ(out.floats()[0], -INFINITY);
  in.floats()[35] = INFINITY;
  in.floats()[79] = std::nanf("");
  run_kernel(*make_kernel("reduce", ReduceParams{Reduction::log_sum_exp, 2}), {in.arg}, {out.arg}, 1);
  EXPECT_EQ(out.floats()[0], INFINITY);
  EXPECT_TRUE(std::isnan(out.floats()[1]));
  for (const Reduction op : {Reduction::max, Reduction::min}) {
    run_kernel(*make_kernel("reduce", ReduceParams{op, 2}), {in.arg}, {out.arg}, 1);
    EXPECT_TRUE(std::isnan(out.floats()[1]));
  }
  TestTensor empty({3, 0}), three({3});
  run_kernel(*make_kernel("reduce", ReduceParams{Reduction::sum, 2}), {empty.arg}, {three.arg}, 1);
  EXPECT_EQ(three.floats()[2], 0);
  run_kernel(*make_kernel("reduce", ReduceParams{Reduction::max, 2}), {empty.arg}, {three.arg}, 1);
  EXPECT_EQ(three.floats()[2], -INFINITY);
}

TEST(Reduce, Epilogue) {
  const Program program = program_of("in=2; r2=affine r0 1 1e-5; r3=sqrt r2; r4=div r1 r3; out r4");
  std::mt19937 random(3);
  TestTensor in({2, 6, 50}), scale({6, 1}), out({2, 6, 1}, {}, 1);
  in.fill(random), scale.fill(random);
  run_kernel(*make_kernel("reduce", ReduceParams{Reduction::sum_squares, 4}, &program), {in.arg, scale.arg}, {out.arg},
             3);
  out.for_each([&](const std::vector<int64_t>& at, float& actual) {
    double squares = 0;
    for (int64_t i = 0; i < 50; ++i) squares += in.at({at[0], at[1], i}) * in.at({at[0], at[1], i});
    ASSERT_NEAR(actual, scale.at({at[1], 0}) / std::sqrt(squares + 1e-5), 1e-6);
  });
}

TEST(Reduce, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("reduce");
  for (const std::vector<int64_t>& params :
       std::vector<std::vector<int64_t>>{{}, {0}, {10, 1}, {-1, 1}, {0, 256}, {0, -1}, {0, 1, 2}})
    EXPECT_FALSE(factory(Record{params, nullptr}));
  const auto kernel = make_kernel("reduce", ReduceParams{Reduction::sum, 2});
  TestTensor in({2, 3}), good({2}), kept({2, 1}), bad({3}), scalar(Dims{});
  EXPECT_TRUE(kernel->check(std::vector{in.arg}, std::vector{good.arg}));
  EXPECT_TRUE(kernel->check(std::vector{in.arg}, std::vector{kept.arg}));
  EXPECT_FALSE(kernel->check(std::vector{in.arg}, std::vector{bad.arg}));
  EXPECT_FALSE(kernel->check(std::vector{in.arg}, std::vector{scalar.arg}));
  EXPECT_FALSE(kernel->check(std::vector{good.arg}, std::vector{scalar.arg}));
}

}  // namespace
}  // namespace lathe::cpu
