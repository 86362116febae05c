// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "kernels/cpu/kernel_runner.h"
#include "kernels/cpu/normalization/normalization.h"

namespace lathe::cpu {
namespace {

constexpr float kEpsilon = 1e-5f;

// The normalized value of each element, by definition; and how much it changes with the rounding of the mean.
struct Normalized {
  double value, condition;
};
std::vector<Normalized> normalized(TestTensor& x, uint32_t axes, bool subtract_mean) {
  const auto key_of = [&](std::vector<int64_t> index) {
    for (size_t d = 0; d < index.size(); ++d)
      if (axes >> d & 1) index[d] = 0;
    return index;
  };
  struct Group {
    double count = 0, sum = 0, squares = 0;
  };
  std::map<std::vector<int64_t>, Group> groups;
  x.for_each([&](const std::vector<int64_t>& at, float& v) {
    Group& g = groups[key_of(at)];
    ++g.count, g.sum += v;
  });
  const auto mean_of = [&](const Group& g) { return subtract_mean ? g.sum / g.count : 0.0; };
  x.for_each([&](const std::vector<int64_t>& at, float& v) {
    Group& g = groups[key_of(at)];
    g.squares += (v - mean_of(g)) * (v - mean_of(g));
  });
  std::vector<Normalized> result;
  x.for_each([&](const std::vector<int64_t>& at, float& v) {
    const Group& g = groups[key_of(at)];
    const double rstd = 1 / std::sqrt(g.squares / g.count + kEpsilon);
    result.push_back({(v - mean_of(g)) * rstd, std::abs(mean_of(g)) * rstd});
  });
  return result;
}

TEST(Normalization, EveryAxesAndLayout) {
  const Program program = program_of("in=2; r2=add r0 r1; r3=relu r2; out r3");
  std::mt19937 random(21);
  for (const std::vector<int64_t>& dims :
       std::vector<std::vector<int64_t>>{{2, 3, 4, 5}, {1, 70, 7, 7}, {3, 1, 33, 2}, {2, 150, 1, 35}, {1, 8, 20, 17}})
    for (uint32_t axes = 1; axes < 16; ++axes)
      for (const bool nhwc : {false, true})
        for (const int variant : {0, 1, 2, 3}) {
          const bool rms = variant & 1, fused = variant & 2;
          const std::vector<int> order = nhwc ? std::vector<int>{0, 2, 3, 1} : std::vector<int>{};
          // Scale over the normalized dimensions (layer) or over the channels (instance).
          std::vector<int64_t> scale_dims = {1, dims[1], 1, 1}, bias_dims = dims;
          for (size_t d = 0; d < 4; ++d)
            if (!(axes >> d & 1)) bias_dims[d] = 1;
          TestTensor x(dims, order, 3), y(dims, order, 2), scale(scale_dims), bias(bias_dims), residual(dims, order);
          x.fill(random, 2, 3), scale.fill(random), bias.fill(random), residual.fill(random);
          const auto kernel = make_kernel("normalization", NormalizationParams{!rms, axes, kEpsilon, true, !rms},
                                          fused ? &program : nullptr);
          std::vector<TensorArg> inputs = {x.arg, scale.arg};
          if (!rms) inputs.push_back(bias.arg);
          if (fused) inputs.push_back(residual.arg);
          const std::vector<Normalized> plain = normalized(x, axes, !rms);
          for (const int threads : {1, 3}) {
            run_kernel(*kernel, inputs, {y.arg}, threads);
            EXPECT_TRUE(y.gaps_untouched());
            size_t i = 0;
            y.for_each([&](const std::vector<int64_t>& at, float& actual) {
              const auto [value, condition] = plain[i++];
              const double rounding = 1.2e-7 * condition * std::abs(scale.at(at));
              double expected = value * scale.at(at) + (rms ? 0 : bias.at(at));
              if (fused) expected = std::max(0.0, expected + residual.at(at));
              ASSERT_NEAR(actual, expected, 1e-5 * std::max(1.0, std::abs(expected)) + rounding)
                  << "axes " << axes << " nhwc " << nhwc << " variant " << variant;
            });
          }
        }
}

TEST(Normalization, GroupsAsADimension) {
  std::mt19937 random(22);
  // N G C/G H W.
  for (const std::vector<int64_t>& dims :
       std::vector<std::vector<int64_t>>{{2, 3, 4, 6, 5}, {1, 32, 10, 9, 9}, {1, 3, 150, 4, 4}, {1, 7, 1, 5, 5}})
    for (const bool nhwc : {false, true})
      for (const bool scale_by_group : {false, true}) {
        const std::vector<int> order = nhwc ? std::vector<int>{0, 3, 4, 1, 2} : std::vector<int>{};
        TestTensor x(dims, order), y(dims, order), scale({1, dims[1], scale_by_group ? 1 : dims[2], 1, 1});
        x.fill(random, 1, 5), scale.fill(random);
        const std::vector<Normalized> plain = normalized(x, 0b11100, true);
        const auto kernel = make_kernel("normalization", NormalizationParams{true, 0b11100, kEpsilon, true});
        run_kernel(*kernel, {x.arg, scale.arg}, {y.arg}, 3);
        size_t i = 0;
        y.for_each([&](const std::vector<int64_t>& at, float& actual) {
          ASSERT_NEAR(actual, plain[i++].value * scale.at(at), 1e-5);
        });
      }
}

TEST(Normalization, SplitsTheChannelsIntoGroups) {
  std::mt19937 random(24);
  const Program program = program_of("in=2; r2=mul r0 r1; out r2");
  for (const bool nhwc : {false, true}) {
    const std::vector<int> order = nhwc ? std::vector<int>{0, 2, 3, 1} : std::vector<int>{};
    TestTensor x({2, 12, 5, 6}, order), y({2, 12, 5, 6}, order), scale({12, 1, 1}), gate({2, 1, 1, 6});
    x.fill(random, 1, 5), scale.fill(random), gate.fill(random);
    TestTensor grouped({2, 3, 4, 5, 6});  // as N G C/G H W
    grouped.for_each([&](const std::vector<int64_t>& at, float& v) {
      v = x.at({at[0], at[1] * 4 + at[2], at[3], at[4]});
    });
    const std::vector<Normalized> plain = normalized(grouped, 0b11100, true);
    const auto kernel =
        make_kernel("normalization", NormalizationParams{true, 0b11100, kEpsilon, true, false, 3}, &program);
    run_kernel(*kernel, {x.arg, scale.arg, gate.arg}, {y.arg}, 3);
    size_t i = 0;
    y.for_each([&](const std::vector<int64_t>& at, float& actual) {
      ASSERT_NEAR(actual, plain[i++].value * scale.at(at) * gate.at(at), 1e-5);
    });
  }
}

TEST(Normalization, InPlaceWithALargeMean) {
  std::mt19937 random(23);
  TestTensor x({4, 1000});
  x.fill(random, 1, 1000);
  const std::vector<Normalized> plain = normalized(x, 2, true);
  run_kernel(*make_kernel("normalization", NormalizationParams{true, 2, kEpsilon}), {x.arg}, {x.arg}, 1);
  for (size_t i = 0; i < plain.size(); ++i) ASSERT_NEAR(x.floats()[i], plain[i].value, 2e-4);
}

TEST(Normalization, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("normalization");
  for (const std::vector<int64_t>& params : std::vector<std::vector<int64_t>>{{},
                                                                              {0, 1, 0, 0, 0},
                                                                              {2, 1, 0, 0, 0, 1},
                                                                              {0, 256, 0, 0, 0, 1},
                                                                              {0, -1, 0, 0, 0, 1},
                                                                              {0, 1, int64_t{1} << 32, 0, 0, 1},
                                                                              {0, 1, 0, 2, 0, 1},
                                                                              {0, 1, 0, 0, 0, 0}})
    EXPECT_FALSE(factory(Record{params, nullptr}));
  const auto kernel = make_kernel("normalization", NormalizationParams{.axes = 2, .has_scale = true});
  TestTensor a({2, 3}), b({2, 4}), scale({3});
  EXPECT_TRUE(kernel->check(std::vector{a.arg, scale.arg}, std::vector{a.arg}));
  EXPECT_FALSE(kernel->check(std::vector{a.arg}, std::vector{a.arg}));
  EXPECT_FALSE(kernel->check(std::vector{b.arg, scale.arg}, std::vector{b.arg}));
  EXPECT_FALSE(kernel->check(std::vector{a.arg, scale.arg}, std::vector{b.arg}));
  EXPECT_FALSE(kernel->check(std::vector{scale.arg, scale.arg}, std::vector{scale.arg}));
}

}  // namespace
}  // namespace lathe::cpu
