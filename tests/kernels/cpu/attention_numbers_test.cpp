// SPDX-License-Identifier: Apache-2.0
// Attention of numbers that are none, infinite, very large or very small.
#include "kernels/cpu/attention_case.h"
#include "kernels/cpu/isa_levels.h"

namespace lathe::cpu {
namespace {

using attention::AttentionParams;

// Numbers that are not the sum of three bf16, and widths of several panels, where products are of such.
TEST(Attention, NumbersWithoutTerms) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity(), kLargest = std::numeric_limits<float>::max();
  std::mt19937 random(10);
  for (const float special : {std::numeric_limits<float>::quiet_NaN(), kInfinite, -kInfinite, kLargest})
    for (const size_t input : {0, 1, 2}) {
      if (input == 1 && special == kLargest) continue;  // the plain evaluation scales queries first
      AttentionCase c{1, 2, 1, 131, 290, 40, 150};      // 262 rows
      c.attrs.scale = input == 0 && special == kLargest ? 0x1p-124 : 1;
      c.attrs.causal = input == 1;
      c.special = special, c.special_input = input;
      expect_right(c, random);
    }
}

TEST(Attention, SinksOfEverySize) {
  for (const bool bf16 : {false, true})
    for (const float sink : {-std::numeric_limits<float>::infinity(), -300.0f, 300.0f, std::nanf("")})
      for (const bool hides : {false, true}) {
        TestTensor q({1, 1, 20, 16}), k({1, 1, 40, 16}), v({1, 1, 40, 16}), mask({1, 1, 1, 40}), out({1, 1, 20, 16});
        TestTensor sinks({1});
        std::mt19937 random(7);
        for (TestTensor* tensor : {&q, &k, &v}) tensor->fill(random, 1);
        mask.for_each([&](const Dims&, float& x) { x = hides ? -std::numeric_limits<float>::infinity() : 0; });
        sinks.for_each([&](const Dims&, float& x) { x = sink; });
        const AttentionParams params{.scale = 0.5f, .masked = true, .bf16 = bf16, .has_sinks = true};
        run_kernel(*make_kernel("attention", params), {q.arg, k.arg, v.arg, mask.arg, sinks.arg}, {out.arg}, 1);
        const float y = out.at({0, 0, 19, 15});
        EXPECT_EQ(std::isnan(y), std::isnan(sink) || (hides && std::isinf(sink))) << sink << ' ' << bf16;
        EXPECT_EQ(y == 0, !std::isnan(y) && (hides || sink > 0)) << sink << ' ' << bf16;
      }
}

TEST(Attention, WeightsAreZerosBeforeTheyAreDenormal) {
  const std::vector<float> scores = {0, -1, -80, -87, -88, -95, -100, -104, -1e30f};
  for (const auto& level : LATHE_ISA_LEVELS(weigh_scores)) {
    std::vector<float> row(64, 7.0f);
    std::copy(scores.begin(), scores.end(), row.begin());
    const float sum = level.function({row.data(), static_cast<int64_t>(scores.size()), 1, 0, 0});
    EXPECT_NEAR(sum, 1 + std::exp(-1.0f), 1e-6) << level.level;
    for (size_t i = 0; i < scores.size(); ++i) {
      const float weight = scores[i] < -87.3365f ? 0 : std::exp(scores[i]);
      EXPECT_NEAR(row[i], weight, 1e-6f * weight) << level.level << " " << scores[i];
    }
    row[3] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(level.function({row.data(), static_cast<int64_t>(scores.size()), 1, 0, 0}))) << level.level;
  }
}

// Scores that are no numbers, or infinite, make the weights that a softmax makes of them.
TEST(Attention, ScoresThatAreNoNumbers) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity(), kLowest = std::numeric_limits<float>::lowest();
  for (const bool bf16 : {false, true})
    for (const float special : {std::numeric_limits<float>::quiet_NaN(), kInfinite, -kInfinite, kLowest}) {
      TestTensor q({1, 1, 20, 16}), k({1, 1, 40, 16}), v({1, 1, 40, 16}), mask({1, 1, 1, 40}), out({1, 1, 20, 16});
      std::mt19937 random(7);
      for (TestTensor* tensor : {&q, &k, &v}) tensor->fill(random, 1);
      mask.for_each([&](const Dims& at, float& x) { x = at[3] == 3 ? special : 0; });
      const auto run = [&] {
        run_kernel(*make_kernel("attention", AttentionParams{.scale = 0.5f, .masked = true, .bf16 = bf16}),
                   {q.arg, k.arg, v.arg, mask.arg}, {out.arg}, 1);
        return out.at({0, 0, 19, 15});
      };
      EXPECT_EQ(std::isnan(run()), !(special < 0)) << special << ' ' << bf16;
      mask.for_each([&](const Dims&, float& x) { x = special; });  // of all keys
      EXPECT_EQ(std::isnan(run()), special != kLowest) << special << ' ' << bf16;
    }
}

}  // namespace
}  // namespace lathe::cpu
