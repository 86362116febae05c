// SPDX-License-Identifier: Apache-2.0
#include "shape/constraint.h"

#include <gtest/gtest.h>

#include <random>

#include "shape/broadcast.h"

namespace lathe {
namespace {

Expr s(SymbolId id) { return Expr::symbol(id); }

TEST(Constraint, RangesDecide) {
  const std::vector<Range> ranges = {{1, 8}, {2, 8}, {16, Range::kUnbounded}};
  const auto decided = [&](Relation relation, const Expr& a, const Expr& b) {
    return decide({relation, a, b, {}}, ranges);
  };
  EXPECT_EQ(decided(Relation::equal, s(0) * 4, 4 * s(0)), true);
  EXPECT_EQ(decided(Relation::equal, s(0), s(2)), false);
  EXPECT_EQ(decided(Relation::equal, s(0), s(1)), std::nullopt);
  EXPECT_EQ(decided(Relation::at_most, s(1), s(2)), true);
  EXPECT_EQ(decided(Relation::at_most, s(2), s(1)), false);
  EXPECT_EQ(decided(Relation::at_most, s(0), s(1)), std::nullopt);
  EXPECT_EQ(decided(Relation::broadcast, s(0), s(2)), std::nullopt);  // s0 may be 1
  EXPECT_EQ(decided(Relation::broadcast, s(1), s(2)), false);
  EXPECT_EQ(decided(Relation::expand, s(2), s(0)), false);  // s2 cannot be 1, and s0 need not
  EXPECT_EQ(decided(Relation::expand, 1, s(2)), true);
  EXPECT_EQ(decided(Relation::equal, s(9), s(0)), std::nullopt);  // nothing is known of s9
}

TEST(Constraint, EquationsOfOneSymbolAreSolved) {
  const std::vector<Range> ranges = {{1, 8}, {0, 8}, {2, 8}, {1, 64}};
  const auto solution = [&](Relation relation, const Expr& a, const Expr& b) {
    return solve(as_equation({relation, a, b, {}}, ranges), ranges);
  };
  const std::optional<Solution> one = solution(Relation::equal, s(0) * 100352, 100352);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->symbol, 0u);
  EXPECT_EQ(one->value, 1);
  EXPECT_EQ(solution(Relation::equal, s(0) * s(1) * 3, s(0) * 12)->value, 4);  // s0 is not 0
  EXPECT_FALSE(solution(Relation::equal, s(0) * s(1), s(1) * 4));              // s1 may be
  EXPECT_FALSE(solution(Relation::equal, s(0) * 2, 7));
  EXPECT_FALSE(solution(Relation::equal, s(0), s(1)));
  EXPECT_FALSE(solution(Relation::equal, s(0) * s(0), 4));
  EXPECT_FALSE(solution(Relation::equal, floordiv(s(0), 2), 4));
  EXPECT_EQ(solution(Relation::broadcast, 49, s(2) * 7)->value, 7);  // 7 * s2 is not 1
  EXPECT_FALSE(solution(Relation::broadcast, 49, s(3)));             // s3 may be 1 or 49
  EXPECT_EQ(solution(Relation::broadcast, 49, s(0))->value, 1);      // s0 cannot be 49
}

TEST(Constraint, SymbolsThatEquationsMakeEqual) {
  const std::vector<Range> ranges = {{1, 8}, {1, 8}, {1, 8}, {0, 8}};
  using Pair = std::pair<SymbolId, SymbolId>;
  const auto equal = [&](const Expr& a, const Expr& b) { return equal_symbols({Relation::equal, a, b, {}}, ranges); };
  EXPECT_EQ(equal(s(1), s(0)), Pair(0, 1));
  EXPECT_EQ(equal(s(0) * s(2) * 64, s(2) * s(1) * 64), Pair(0, 1));
  EXPECT_FALSE(equal(s(0) * s(3), s(1) * s(3)));  // s3 may be 0
  EXPECT_FALSE(equal(s(0) * 2, s(1)));
  EXPECT_FALSE(equal(s(0) + 1, s(1)));
  EXPECT_FALSE(equal(s(0) * s(0), s(1) * s(1)));
  EXPECT_FALSE(equal(s(0) * s(2), s(1) * s(1)));
  EXPECT_FALSE(equal_symbols({Relation::expand, s(0), s(1), {}}, ranges));
}

TEST(Constraint, ProductsTellWhatExpands) {
  const std::vector<Range> ranges = {{1, 8}, {1, 8}, {1, 8}, {1, 8}, {0, 8}};
  const auto found = [&](const Expr& a, const Expr& b) {
    std::string text;
    for (const Constraint& expansion : expansions_of({Relation::equal, a, b, {}}, ranges))
      text += to_string(expansion) + "; ";
    return text;
  };
  const Expr batches = broadcast_dim(s(0), s(1)), tokens = broadcast_dim(s(2), s(3));
  EXPECT_EQ(found(batches * tokens * 64, s(0) * s(2) * 64), "s1 = s0 or 1; s3 = s2 or 1; ");
  EXPECT_EQ(found(s(0), batches), "s1 = s0 or 1; ");
  EXPECT_EQ(found(s(0) * s(3), max(s(0), batches) * s(3)), "s1 = s0 or 1; ");
  EXPECT_EQ(found(max(s(0), s(1)), s(0)), "");  // s1 may be anything smaller
  EXPECT_EQ(found(batches * 2, s(0) * 4), "");  // 4 and 8, say
  EXPECT_EQ(found(batches * tokens, s(0) * s(0)), "");
  EXPECT_EQ(found(broadcast_dim(s(0), s(4)), s(0)), "");  // s4 may be 0, and s0 with it
  EXPECT_EQ(found(batches * s(4), s(0) * s(4)), "");      // nothing is told where s4 is 0
  EXPECT_EQ(found(batches + 1, s(0) + 1), "s1 = s0 or 1; ");
}

TEST(Constraint, WhatIsBroadcastExpandsToTheResult) {
  const std::vector<Range> ranges(3, {1, 8});
  EXPECT_EQ(decide({Relation::expand, s(0), broadcast_dim(s(0), s(1)), {}}, ranges), true);
  EXPECT_EQ(decide({Relation::expand, s(2), broadcast_dim(s(0), s(1)), {}}, ranges), std::nullopt);
  EXPECT_EQ(decide({Relation::expand, broadcast_dim(s(0), s(1)), s(0), {}}, ranges), std::nullopt);
}

// Against all values of two symbols: what is decided is so for each, and a solution is the only one.
TEST(Constraint, AgreesWithEveryValue) {
  std::mt19937 random(7);
  const auto pick = [&](int bound) { return static_cast<int64_t>(random() % static_cast<uint32_t>(bound)); };
  const auto expression = [&] {
    const Expr linear = (pick(4) - 1) * s(0) + (pick(4) - 1) * s(1) + pick(9);
    return pick(3) == 0 ? floordiv(linear, pick(3) + 1) : pick(3) == 0 ? linear * s(0) : linear;
  };
  int decided = 0, solved = 0, merged = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<Range> ranges;
    for (int i = 0; i < 2; ++i) {
      const int64_t min = pick(4);
      ranges.push_back({min, min + pick(4)});
    }
    const Constraint constraint{static_cast<Relation>(pick(4)), expression(), expression(), {}};
    const std::optional<bool> verdict = decide(constraint, ranges);
    const Constraint equation = as_equation(constraint, ranges);
    const std::optional<Solution> solution = solve(equation, ranges);
    decided += verdict.has_value();
    solved += solution.has_value();
    const auto equal = equal_symbols(equation, ranges);
    merged += equal.has_value();
    for (int64_t x = ranges[0].min; x <= ranges[0].max; ++x)
      for (int64_t y = ranges[1].min; y <= ranges[1].max; ++y) {
        const std::vector<int64_t> values = {x, y};
        const bool truth = holds(constraint.relation, *constraint.a.evaluate(values), *constraint.b.evaluate(values));
        SCOPED_TRACE(fmt::format("{} at {}, {}", to_string(constraint), x, y));
        ASSERT_EQ(verdict.value_or(truth), truth);
        ASSERT_EQ(holds(equation.relation, *equation.a.evaluate(values), *equation.b.evaluate(values)), truth);
        ASSERT_TRUE(!equal || !truth || values[equal->first] == values[equal->second]);
        ASSERT_EQ(solution ? values[solution->symbol] == solution->value : truth, truth);
      }
  }
  EXPECT_GT(decided, 2000);
  EXPECT_GT(solved, 200);
  EXPECT_GT(merged, 20);
}

}  // namespace
}  // namespace lathe
