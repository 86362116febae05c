// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/kernel_runner.h"

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
      TestTensor x(c.from, order, 3), y(c.to, order, 2);
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
        run_kernel(*make_kernel("resize", {c.axes}), inputs, {y.arg}, threads);
        EXPECT_TRUE(y.gaps_untouched());
        y.for_each([&](const std::vector<int64_t>& at, float& actual) {
          const double expected = interpolated(x, c.axes, tables, at, 0, 0);
          ASSERT_NEAR(actual, expected, 2e-5 * std::max(1.0, std::abs(expected))) << "taps " << c.taps;
        });
      }
    }
}

TEST(Resize, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("resize");
  for (const std::vector<int64_t>& params : std::vector<std::vector<int64_t>>{{}, {-1}, {256}, {1, 2}})
    EXPECT_FALSE(factory(Record{params, nullptr}));
  std::mt19937 random(32);
  TestTensor x({2, 3}), y({2, 6}), z({4, 6});
  Table t(3, 6, 2, random), wide(3, 6, 257, random);
  const auto kernel = make_kernel("resize", {2});
  EXPECT_TRUE(kernel->check(std::vector{x.arg, t.index, t.weight.arg}, std::vector{y.arg}));
  EXPECT_FALSE(kernel->check(std::vector{x.arg, t.weight.arg, t.weight.arg}, std::vector{y.arg}));
  EXPECT_FALSE(kernel->check(std::vector{x.arg, t.index, t.weight.arg}, std::vector{z.arg}));
  EXPECT_FALSE(kernel->check(std::vector{x.arg, t.index, t.weight.arg}, std::vector{x.arg}));
  EXPECT_FALSE(kernel->check(std::vector{x.arg, wide.index, wide.weight.arg}, std::vector{y.arg}));
  EXPECT_FALSE(kernel->check(std::vector{x.arg}, std::vector{y.arg}));
}

}  // namespace
}  // namespace lathe::cpu
