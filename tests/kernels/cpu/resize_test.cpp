// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/kernel_runner.h"
#include "kernels/cpu/resize/resize.h"
#include "ops/op.h"

namespace lathe::cpu {
namespace {

// Tables for one axis; random indices (some outside, which are clamped) and weights, or a copy of one element.
struct Table {
  Table(int64_t from, int64_t to, int64_t taps, std::mt19937& random)
      : index_memory(static_cast<size_t>(to * taps)), weight({to, taps}) {
    std::uniform_int_distribution<int32_t> positions(-2, static_cast<int32_t>(from) + 1);
    for (int32_t& i : index_memory) i = positions(random);
    weight.fill(random);
    index.dtype = DType::i32;
    index.rank = 2;
    index.dims[0] = to, index.dims[1] = taps;
    index.strides[0] = taps, index.strides[1] = 1;
    index.data = index_memory.data();
  }
  int64_t source(int64_t j, int64_t t, int64_t extent) const {
    return std::clamp<int64_t>(index_memory[static_cast<size_t>(j * index.dims[1] + t)], 0, extent - 1);
  }
  std::vector<int32_t> index_memory;
  TensorArg index;
  TestTensor weight;
};

double interpolated(TestTensor& x, uint32_t axes, std::vector<Table>& tables, std::vector<int64_t> at, size_t d,
                    size_t table) {
  if (d == at.size()) return x.at(at);
  if (!(axes >> d & 1)) return interpolated(x, axes, tables, at, d + 1, table);
  double sum = 0;
  const int64_t j = at[d];
  for (int64_t t = 0; t < tables[table].index.dims[1]; ++t) {
    at[d] = tables[table].source(j, t, x.arg.dims[d]);
    sum += tables[table].weight.at({j, t}) * interpolated(x, axes, tables, at, d + 1, table + 1);
  }
  return sum;
}

TEST(Resize, MatchesTheTables) {
  std::mt19937 random(31);
  struct Case {
    std::vector<int64_t> from, to;
    uint32_t axes;
    int64_t taps;
  };
  for (const Case& c : {Case{{1, 64, 5, 6}, {1, 64, 10, 12}, 12, 1},
                        {{2, 19, 5, 6}, {2, 19, 7, 3}, 12, 2},
                        {{1, 3, 9, 40}, {1, 3, 12, 55}, 12, 4},
                        {{1, 3, 40, 9}, {1, 3, 4, 2}, 12, 20},
                        {{2, 3, 4, 5}, {3, 5, 2, 7}, 15, 3},
                        {{2, 3, 4, 5}, {2, 3, 4, 5}, 0, 1},
                        {{1, 1, 1, 1}, {1, 1, 3, 3}, 12, 2},
                        {{1, 2, 3, 4}, {1, 2, 0, 4}, 4, 2}})
    for (const std::vector<int>& order :
         {std::vector<int>{}, std::vector<int>{0, 2, 3, 1}, std::vector<int>{3, 2, 1, 0}}) {
      // Every third time x and y lie in different orders.
      const bool alike = random() % 3 != 0;
      TestTensor x(c.from, alike ? order : std::vector<int>{2, 0, 3, 1}, 3), y(c.to, order, 2);
      x.fill(random);
      std::vector<Table> tables;
      tables.reserve(4);
      std::vector<TensorArg> inputs = {x.arg};
      for (size_t d = 0; d < 4; ++d)
        if (c.axes >> d & 1) {
          tables.emplace_back(c.from[d], c.to[d], c.taps, random);
          inputs.push_back(tables.back().index);
          inputs.push_back(tables.back().weight.arg);
        }
      for (const int threads : {1, 3}) {
        run_kernel(*make_kernel("resize", ResizeParams{c.axes}), inputs, {y.arg}, threads);
        EXPECT_TRUE(y.gaps_untouched());
        y.for_each([&](const std::vector<int64_t>& at, float& actual) {
          const double expected = interpolated(x, c.axes, tables, at, 0, 0);
          ASSERT_NEAR(actual, expected, 2e-5 * std::max(1.0, std::abs(expected))) << "taps " << c.taps;
        });
      }
    }
}

// Tables that are made while running, for every rule, by scales and by sizes, against the op's plain evaluation.
void compare_rule(const ResizeAttrs& attrs, bool by_scales, std::mt19937& random) {
  const std::vector<int64_t> from = {1, 3, 5, 7},
                             to = by_scales ? std::vector<int64_t>{1, 3, 8, 4} : std::vector<int64_t>{1, 3, 5, 16};
  const float scales[] = {1, 1, 1.75f, 0.6f};
  const ResizeParams params{
      12,
      true,
      {static_cast<SampleRule::Mode>(attrs.mode), static_cast<SampleRule::Coordinates>(attrs.coordinates),
       static_cast<SampleRule::Nearest>(attrs.nearest), attrs.exclude_outside, false, attrs.cubic_a},
      {by_scales ? scales[2] : 0, by_scales ? scales[3] : 0}};
  for (const std::vector<int>& order : {std::vector<int>{}, std::vector<int>{0, 2, 3, 1}}) {
    TestTensor x(from, order), y(to, order, 2);
    x.fill(random);
    Tensor dense = *Tensor::allocate(DType::f32, from);
    x.for_each(
        [&, i = 0](const std::vector<int64_t>&, float& value) mutable { dense.mutable_as<float>()[i++] = value; });
    std::vector<Tensor> inputs = {dense, Tensor(), Tensor(), Tensor()};
    if (by_scales)
      inputs[2] = Tensor::of<float>({4}, {scales[0], scales[1], scales[2], scales[3]});
    else
      inputs[3] = Tensor::of<int64_t>({4}, {to[0], to[1], to[2], to[3]});
    const Result<std::vector<Tensor>> expected = run_op(attrs, inputs, 1);
    ASSERT_TRUE(expected) << expected.error().message;
    run_kernel(*make_kernel("resize", params), {x.arg}, {y.arg}, 3);
    EXPECT_TRUE(y.gaps_untouched());
    y.for_each([&, i = 0](const std::vector<int64_t>&, float& actual) mutable {
      ASSERT_NEAR(actual, (*expected)[0].as<float>()[i++], 2e-5)
          << to_text(attrs) << (by_scales ? " scales" : " sizes");
    });
  }
}

TEST(Resize, MakesTheTablesOfEveryRule) {
  std::mt19937 random(33);
  ResizeAttrs attrs;
  for (attrs.mode = ResizeMode::nearest; attrs.mode <= ResizeMode::cubic;
       attrs.mode = static_cast<ResizeMode>(static_cast<int>(attrs.mode) + 1))
    for (attrs.coordinates = CoordinateMode::half_pixel; attrs.coordinates <= CoordinateMode::tf_half_pixel_for_nn;
         attrs.coordinates = static_cast<CoordinateMode>(static_cast<int>(attrs.coordinates) + 1))
      for (attrs.nearest = NearestMode::round_prefer_floor; attrs.nearest <= NearestMode::ceil;
           attrs.nearest = static_cast<NearestMode>(static_cast<int>(attrs.nearest) + 1))
        for (attrs.exclude_outside = false;; attrs.exclude_outside = true) {
          for (const bool by_scales : {false, true}) compare_rule(attrs, by_scales, random);
          if (attrs.exclude_outside) break;
        }
}

TEST(Resize, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("resize");
  const int64_t infinite = std::bit_cast<int64_t>(HUGE_VAL);
  const std::vector<int64_t> usual = {1, 1, 0, 0, 0, 0, 0, 0, 1, 0};
  EXPECT_TRUE(factory(Record{usual, nullptr}));
  for (const std::vector<int64_t>& params : std::vector<std::vector<int64_t>>{{},
                                                                              {1},
                                                                              {-1, 0, 0, 0, 0, 0, 0, 0, 0},
                                                                              {256, 0, 0, 0, 0, 0, 0, 0, 0},
                                                                              {1, 2, 0, 0, 0, 0, 0, 0, 1, 0},
                                                                              {1, 1, 3, 0, 0, 0, 0, 0, 1, 0},
                                                                              {1, 1, 0, 6, 0, 0, 0, 0, 1, 0},
                                                                              {1, 1, 0, 0, 4, 0, 0, 0, 1, 0},
                                                                              {1, 1, 0, 0, 0, 2, 0, 0, 1, 0},
                                                                              {1, 1, 0, 0, 0, 0, 1, 0, 1, 0},
                                                                              {1, 1, 0, 0, 0, 0, 0, infinite, 1, 0},
                                                                              {1, 1, 0, 0, 0, 0, 0, 0, 0},
                                                                              {1, 0, 0, 0, 0, 0, 0, 0, 1, 0},
                                                                              {1, 1, 0, 0, 0, 0, 0, 0, 1, INT64_MAX},
                                                                              {1, 1, 0, 0, 0, 0, 0, 0, 1, 0x7fc00000}})
    EXPECT_FALSE(factory(Record{params, nullptr}));
  std::mt19937 random(32);
  TestTensor x({2, 3}), y({2, 6}), z({4, 6});
  Table t(3, 6, 2, random), wide(3, 6, 257, random);
  const auto kernel = make_kernel("resize", ResizeParams{2});
  EXPECT_TRUE(kernel->check(std::vector{x.arg, t.index, t.weight.arg}, std::vector{y.arg}));
  EXPECT_FALSE(kernel->check(std::vector{x.arg, t.weight.arg, t.weight.arg}, std::vector{y.arg}));
  EXPECT_FALSE(kernel->check(std::vector{x.arg, t.index, t.weight.arg}, std::vector{z.arg}));
  EXPECT_FALSE(kernel->check(std::vector{x.arg, t.index, t.weight.arg}, std::vector{x.arg}));
  EXPECT_FALSE(kernel->check(std::vector{x.arg, wide.index, wide.weight.arg}, std::vector{y.arg}));
  EXPECT_FALSE(kernel->check(std::vector{x.arg}, std::vector{y.arg}));
}

}  // namespace
}  // namespace lathe::cpu
