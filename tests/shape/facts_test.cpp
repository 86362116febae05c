// SPDX-License-Identifier: Apache-2.0
#include "shape/facts.h"

#include <gtest/gtest.h>

#include <random>

namespace lathe {
namespace {

TEST(Facts, IndicesStayBelowExtentsOfAnySize) {
  Facts facts({{0, Range::kUnbounded}, {1, Range::kUnbounded}});
  const Expr H = Expr::symbol(0), W = Expr::symbol(1);
  const Expr h = facts.add_index(H), w = facts.add_index(W);
  EXPECT_TRUE(facts.is_less(h * W + w, H * W));
  EXPECT_FALSE(facts.is_less(h * W + w + Expr(1), H * W));
  EXPECT_TRUE(facts.is_within(W - Expr(1) - w, W));
  EXPECT_FALSE(facts.is_less(h, W));
  EXPECT_EQ(facts.simplify(floordiv(h * W + w, W)), h);
  EXPECT_EQ(facts.simplify(mod(h * W + w, W)), w);
  EXPECT_EQ(facts.simplify(floordiv(h * W + w, H * W)), Expr(0));
  EXPECT_EQ(facts.simplify(min(w, W + Expr(3))), w);
}

TEST(Facts, QuotientsLoseWhatIsBelowACommonFactor) {
  Facts facts;
  const Expr i = facts.add_index(12), j = facts.add_index(4);
  EXPECT_EQ(facts.simplify(floordiv(4 * i + j, 8)), floordiv(i, 2));
  EXPECT_EQ(facts.simplify(mod(4 * i + j, 8)), 4 * i + j - 8 * floordiv(i, 2));
  EXPECT_EQ(facts.simplify(floordiv(i + 12 * j, 12)), j);
  EXPECT_NE(facts.simplify(floordiv(i + 11 * j, 11)), j);
}

TEST(Facts, QuotientsBySums) {
  Facts facts({{0, Range::kUnbounded}, {0, Range::kUnbounded}});
  const Expr H = floordiv(Expr::symbol(0) - Expr(7), 4) + Expr(1), W = floordiv(Expr::symbol(1) - Expr(7), 4) + Expr(1);
  const Expr h = facts.add_index(H), w = facts.add_index(W);
  EXPECT_EQ(facts.simplify(floordiv(h * W + w, W)), h);
  EXPECT_EQ(facts.simplify(mod(h * W + w, W)), w);
  EXPECT_NE(facts.simplify(floordiv(h * W + 2 * w, W)), h);
}

// Whatever is simplified or proven holds for all values.
TEST(Facts, AgreeWithEveryValue) {
  std::mt19937 random(3);
  const auto pick = [&](int64_t bound) { return static_cast<int64_t>(random() % static_cast<uint32_t>(bound)); };
  int changed = 0, proven = 0;
  for (int round = 0; round < 6000; ++round) {
    // Sizes, or any numbers: where a divisor is 0 there is no value.
    const bool are_sizes = round % 2 == 0;
    const Range range_n = are_sizes ? Range{1, 5} : Range{-2, 2}, range_k = are_sizes ? Range{2, 4} : Range{-1, 3};
    Facts facts({range_n, range_k});
    const Expr n = Expr::symbol(0), k = Expr::symbol(1);
    const Expr extents[] = {n, k, n * k, Expr(pick(7))};
    const Expr extent_i = extents[pick(4)], extent_j = extents[pick(4)];
    const Expr i = facts.add_index(extent_i), j = facts.add_index(extent_j);
    const auto term = [&]() -> Expr {
      const Expr atoms[] = {i, j, i * k, j * n, i * n, Expr(pick(9) - 4), n, k};
      return atoms[pick(8)] * Expr(pick(5) - 1);
    };
    const Expr divisors[] = {k, n, n * k, Expr(pick(6) + 1), 2 * k};
    const Expr sum = term() + term() + term(), divisor = divisors[pick(5)];
    const Expr options[] = {floordiv(sum, divisor), mod(sum, divisor), min(sum, divisor),
                            floordiv(floordiv(sum, k), n) + mod(sum, n), max(sum, term())};
    const Expr e = options[pick(5)];
    if (!e.is_valid()) continue;
    const Expr simple = facts.simplify(e);
    changed += simple != e;
    const bool nonnegative = facts.is_nonnegative(e);
    proven += nonnegative;
    for (int64_t a = range_n.min; a <= range_n.max; ++a)
      for (int64_t b = range_k.min; b <= range_k.max; ++b) {
        const int64_t symbols[] = {a, b};
        for (int64_t x = 0; x < *extent_i.evaluate(symbols); ++x)
          for (int64_t y = 0; y < *extent_j.evaluate(symbols); ++y) {
            const int64_t values[] = {a, b, x, y};
            const std::optional<int64_t> value = e.evaluate(values);
            ASSERT_TRUE(value || !are_sizes);
            if (!value) continue;
            ASSERT_EQ(simple.evaluate(values), value) << e.to_string() << " -> " << simple.to_string();
            if (nonnegative) {
              ASSERT_GE(*value, 0) << e.to_string();
            }
          }
      }
  }
  EXPECT_GT(changed, 300);
  EXPECT_GT(proven, 300);
}

}  // namespace
}  // namespace lathe
