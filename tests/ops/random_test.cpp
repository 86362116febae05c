// SPDX-License-Identifier: Apache-2.0
// Random numbers: the published generator, the distributions, and seeds that are fresh.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/philox.h"
#include "ops/op.h"
#include "ops/random_seed.h"

namespace lathe {
namespace {

TEST(Philox, GivesThePublishedNumbers) {
  EXPECT_EQ(philox_block(0, 0), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(random_bits(0, 0), 0xe169c58d6627e8d5);
  EXPECT_EQ(random_bits(0, 1), 0x9b00dbd8bc57ac4c);
}

TEST(Philox, QuantilesAreThoseOfTheNormalDistribution) {
  for (const double p : {1e-16, 1e-9, 0.01, 0.0749, 0.0751, 0.3, 0.5, 0.77, 0.9249, 0.9251, 0.999999, 1 - 1e-15}) {
    const double z = normal_quantile(p);
    EXPECT_NEAR(std::erfc(-z / std::sqrt(2.0)) / 2 / p, 1, 1e-13 * (1 + z * z)) << p;
  }
}

Tensor draw(const RandomAttrs& attrs, int64_t count, int64_t seed) {
  return (*run_op(attrs, std::vector{Tensor::of<int64_t>({1}, {count}), Tensor::of<int64_t>({1}, {seed})}, 1))[0];
}

struct Moments {
  double mean = 0, deviation = 0, least = INFINITY, most = -INFINITY;
  explicit Moments(const Tensor& tensor) {
    const auto count = static_cast<double>(tensor.volume());
    for (int64_t i = 0; i < tensor.volume(); ++i) {
      const double value = tensor.at_double(i);
      mean += value / count;
      least = std::min(least, value);
      most = std::max(most, value);
    }
    for (int64_t i = 0; i < tensor.volume(); ++i) deviation += std::pow(tensor.at_double(i) - mean, 2) / count;
    deviation = std::sqrt(deviation);
  }
};

constexpr int64_t kMany = 200000;

TEST(Random, UniformNumbersFillTheirRange) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    RandomAttrs attrs;
    attrs.dtype = dtype;
    attrs.a = -1;
    attrs.b = 3;
    const Moments moments(draw(attrs, kMany, 11));
    EXPECT_NEAR(moments.mean, 1, 0.02) << name_of(dtype);
    EXPECT_NEAR(moments.deviation, 4 / std::sqrt(12.0), 0.01) << name_of(dtype);
    EXPECT_GE(moments.least, -1);
    EXPECT_LT(moments.least, -0.97);
    EXPECT_LT(moments.most, 3);
    EXPECT_GT(moments.most, 2.95);
  }
}

TEST(Random, NormalNumbersHaveTheirMoments) {
  RandomAttrs attrs;
  attrs.op = RandomOp::normal;
  attrs.a = 5;
  attrs.b = 2;
  const Moments moments(draw(attrs, kMany, 3));
  EXPECT_NEAR(moments.mean, 5, 0.02);
  EXPECT_NEAR(moments.deviation, 2, 0.02);
  EXPECT_LT(moments.least, 5 - 2 * 3.9);
  EXPECT_GT(moments.most, 5 + 2 * 3.9);
}

TEST(Random, SeedsAndPositionsDecideAlone) {
  EXPECT_TRUE(identical(draw({}, 100, 1), draw({}, 100, 1)));
  EXPECT_FALSE(identical(draw({}, 100, 1), draw({}, 100, 2)));
  EXPECT_EQ(draw({}, 1000, 1).at_double(99), draw({}, 100, 1).at_double(99));
}

int64_t fresh_seed(int64_t stream) {
  FreshSeedAttrs attrs;
  attrs.stream = stream;
  return (*run_op(attrs, {}, 1))[0].at(0);
}

TEST(FreshSeed, FollowsTheRunsOfASequence) {
  set_random_seed(5);
  const int64_t first = fresh_seed(0);
  RandomSequence one, two;
  std::vector<int64_t> drawn;
  for (int i = 0; i < 3; ++i) {
    const RandomSequence::Run run(one);
    drawn.push_back(fresh_seed(0));
    {
      const RandomSequence::Run within(two);
      EXPECT_EQ(fresh_seed(0), drawn[static_cast<size_t>(i)]);
    }
    EXPECT_EQ(fresh_seed(0), drawn.back());
  }
  EXPECT_EQ(drawn[0], first);
  EXPECT_EQ(std::set<int64_t>(drawn.begin(), drawn.end()).size(), 3u);
  EXPECT_EQ(fresh_seed(0), first);  // outside of any run
  set_random_seed(5);
  {
    const RandomSequence::Run run(one);
    EXPECT_EQ(fresh_seed(0), first);
  }
  set_random_seed(std::nullopt);
}

TEST(FreshSeed, NeverComesAgainUnlessTheProcessHasASeed) {
  std::set<int64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(fresh_seed(i % 2));
  EXPECT_EQ(seen.size(), 1000u);
  set_random_seed(5);
  const int64_t first = fresh_seed(0), second = fresh_seed(1);
  EXPECT_NE(first, second);
  EXPECT_EQ(fresh_seed(0), first);
  EXPECT_EQ(fresh_seed(1), second);
  set_random_seed(6);
  EXPECT_NE(fresh_seed(0), first);
  set_random_seed(std::nullopt);
  EXPECT_NE(fresh_seed(0), fresh_seed(0));
}

}  // namespace
}  // namespace lathe
