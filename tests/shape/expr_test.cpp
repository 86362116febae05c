// SPDX-License-Identifier: Apache-2.0
#include "shape/expr.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "shape/broadcast.h"

namespace lathe {
namespace {

Expr s(SymbolId id) { return Expr::symbol(id); }

TEST(Expr, ConstantsFold) {
  EXPECT_EQ((Expr(2) + 3 * Expr(4) - 5).as_constant(), 9);
  EXPECT_EQ(floordiv(-7, 2).as_constant(), -4);
  EXPECT_EQ(floordiv(7, -2).as_constant(), -4);
  EXPECT_EQ(mod(-7, 2).as_constant(), 1);
  EXPECT_EQ(mod(7, -2).as_constant(), -1);
  EXPECT_EQ(ceildiv(7, 2).as_constant(), 4);
  EXPECT_EQ(ceildiv(-7, 2).as_constant(), -3);
  EXPECT_EQ(ceildiv(7, -2).as_constant(), -3);
  EXPECT_EQ(min(3, -2).as_constant(), -2);
  EXPECT_EQ(max(3, -2).as_constant(), 3);
}

TEST(Expr, OverflowPoisons) {
  EXPECT_FALSE((Expr(INT64_MAX) + 1).is_valid());
  EXPECT_FALSE((Expr(INT64_MIN) - 1).is_valid());
  EXPECT_FALSE((Expr(INT64_MAX) * 2).is_valid());
  EXPECT_FALSE((s(0) * INT64_MAX * 2).is_valid());
  EXPECT_FALSE((s(0) * INT64_MAX + s(0)).is_valid());
  EXPECT_FALSE(floordiv(INT64_MIN, -1).is_valid());
  EXPECT_FALSE(floordiv(s(0), 0).is_valid());
  EXPECT_FALSE((Expr::invalid() + 1).is_valid());
  EXPECT_FALSE((Expr::invalid() * 0).is_valid());
  EXPECT_FALSE(Expr::invalid() == Expr::invalid());
  EXPECT_EQ(mod(INT64_MIN, -1).as_constant(), 0);
  for (const auto& [low, high] : {std::pair(int64_t{-1}, INT64_MAX), {INT64_MIN, INT64_MAX}, {INT64_MIN, int64_t{0}}}) {
    EXPECT_EQ(min(high, low).as_constant(), low);
    EXPECT_EQ(max(low, high).as_constant(), high);
  }
  EXPECT_EQ((Expr(INT64_MIN) - INT64_MIN).as_constant(), 0);
}

TEST(Expr, NormalFormProvesEquality) {
  const Expr n = s(0), h = s(1), w = s(2);
  EXPECT_EQ((n + h) * w, w * h + n * w);
  EXPECT_EQ((n + 1) * (n - 1), n * n - 1);
  EXPECT_EQ(n - n, Expr(0));
  EXPECT_EQ(floordiv(n * h * 768, n * h), Expr(768));
  EXPECT_EQ(floordiv(n * h * 768, n * 12), h * 64);
  EXPECT_EQ(floordiv(n * h * 3, 2 * n), floordiv(3 * h, 2));
  EXPECT_EQ(floordiv(n * h + n * w, h + w), n);
  EXPECT_EQ(floordiv((h + 1) * (w + 2), w + 2), h + 1);
  EXPECT_EQ(floordiv(4 * n + 3, 4), n);
  EXPECT_EQ(floordiv(4 * n + 3, 6), floordiv(2 * n + 1, 3));
  EXPECT_EQ(floordiv(n - 1, 2) + 1, floordiv(n + 1, 2));
  EXPECT_EQ(floordiv(floordiv(n + 1, 2) + 1, 2), floordiv(n + 3, 4));
  EXPECT_EQ(ceildiv(ceildiv(n, 2), 2), ceildiv(n, 4));
  EXPECT_EQ(mod(n * h, h), Expr(0));
  EXPECT_EQ(mod(8 * n + 5, 4), Expr(1));
  EXPECT_EQ(mod(3 * n, 2), mod(n, 2));
  EXPECT_EQ(mod(mod(n, 8) + h, 4), mod(n + h, 4));
  EXPECT_EQ(floordiv(mod(n, 8), 8), Expr(0));
  EXPECT_EQ(floordiv(0 - n, 0 - h), floordiv(n, h));
  EXPECT_EQ(min(n, h), min(h, n));
  EXPECT_EQ(min(min(n, h), w), min(n, min(w, h)));
  EXPECT_EQ(max(n, n), n);
  EXPECT_EQ(max(n + 1, n), n + 1);
  EXPECT_EQ(min(min(n, 3), 5), min(n, 3));
  EXPECT_EQ(min(n, 3) + max(n - 3, 0), n);  // what a roll cuts off and puts back
  EXPECT_EQ(n - max(n - 7, 0), min(n, 7));
  EXPECT_EQ(max(n - max(n - 1, 0), 0), max(min(n, 1), 0));
  EXPECT_EQ(max(max(n, 0) - 3, 0), max(n - 3, 0));
  EXPECT_EQ(max(n, h) + min(n, h), n + h);
  EXPECT_EQ(max(max(n, h), w + 1), max(n, max(w + 1, h)));
  EXPECT_EQ(min(2 * n, 4), 2 * min(n, 2));
  EXPECT_EQ(min(n + 5, h + 5), min(n, h) + 5);
  EXPECT_EQ(n + mod(0 - n, 7), 7 * floordiv(n + 6, 7));  // padded to windows
  EXPECT_EQ(mod(n + mod(6 * n, 7), 7), Expr(0));
  EXPECT_EQ(floordiv(0 - n, 4), 0 - ceildiv(n, 4));
  EXPECT_EQ(max(n, n + mod(h, 8)), n + mod(h, 8));
  EXPECT_EQ(broadcast_dim(broadcast_dim(n, h), n), broadcast_dim(h, n));
  EXPECT_EQ(broadcast_dim(n, broadcast_dim(h, w)), broadcast_dim(broadcast_dim(n, h), w));
  EXPECT_EQ(broadcast_dim(1, n), n);
  EXPECT_EQ(broadcast_dim(49, 49 * n).as_constant(), 49);
  EXPECT_EQ(broadcast_dim(min(n, 512), n), n);  // the first 512 positions, or as many as there are
  EXPECT_EQ(broadcast_dim(h, broadcast_dim(n, min(n, 512))), broadcast_dim(h, n));
  EXPECT_NE(broadcast_dim(min(n, h), n), n);  // h may be 1
  EXPECT_FALSE(floordiv(n, h) == floordiv(h, n));
  EXPECT_FALSE(floordiv(3 * n, 2) == n);
  EXPECT_FALSE(n == h);
}

TEST(Expr, AsSymbol) {
  EXPECT_EQ(s(7).as_symbol(), 7u);
  EXPECT_EQ((s(7) + 0).as_symbol(), 7u);
  EXPECT_EQ((s(7) + 1).as_symbol(), std::nullopt);
  EXPECT_EQ((s(7) * 2).as_symbol(), std::nullopt);
  EXPECT_EQ((s(7) * s(7)).as_symbol(), std::nullopt);
  EXPECT_EQ(Expr(7).as_symbol(), std::nullopt);
}

TEST(Expr, EvaluateRefusesWhatHasNoValue) {
  const std::array<int64_t, 2> values = {INT64_MAX, Expr::kUnbound};
  EXPECT_EQ((s(0) + 1).evaluate(values), std::nullopt);
  EXPECT_EQ((s(0) * s(0) - s(0) * s(0)).evaluate(values), 0);
  EXPECT_EQ(s(1).evaluate(values), std::nullopt);
  EXPECT_EQ(s(2).evaluate(values), std::nullopt);
  EXPECT_EQ(floordiv(1, s(0) - INT64_MAX).evaluate(values), std::nullopt);
  EXPECT_EQ(Expr::invalid().evaluate(values), std::nullopt);
  EXPECT_EQ((s(0) + INT64_MIN).evaluate(values), -1);
}

TEST(Expr, BroadcastHasNoValueWhereDimensionsDoNotMeet) {
  const Expr e = broadcast_dim(s(0), s(1));
  for (const auto& [values, expected] : std::vector<std::pair<std::array<int64_t, 2>, std::optional<int64_t>>>{
           {{1, 7}, 7}, {{7, 1}, 7}, {{7, 7}, 7}, {{0, 1}, 0}, {{2, 7}, std::nullopt}, {{0, 7}, std::nullopt}})
    EXPECT_EQ(e.evaluate(values), expected) << values[0] << " " << values[1];
  EXPECT_EQ(e.range(std::array{Range{2, 8}, Range{0, 99}}), (Range{2, 8}));
  EXPECT_EQ(e.range(std::array{Range{0, 8}, Range{1, 4}}), (Range{0, 8}));
  EXPECT_EQ(*parse_expr(broadcast_dim(e, s(2) + 1).to_string()), broadcast_dim(e, s(2) + 1));
}

TEST(Expr, TextForm) {
  const Expr e = 2 * s(0) * s(1) + floordiv(s(2) + 1, 2) + 3;
  EXPECT_EQ(e.to_string(), "2*s0*s1 + floordiv(s2 + 1, 2) + 3");
  const std::array<std::string, 2> names = {"batch", "seq"};
  EXPECT_EQ(e.to_string(names), "2*batch*seq + floordiv(s2 + 1, 2) + 3");
  EXPECT_EQ((Expr(0) - s(0) - 4).to_string(), "-s0 - 4");
  EXPECT_EQ(Expr(INT64_MIN).to_string(), "-9223372036854775808");
  EXPECT_EQ(to_string(Shape{s(0), 3, 224}, names), "[batch, 3, 224]");
  for (const char* text :
       {"-9223372036854775808", "s0 - 9223372036854775808", "-9223372036854775808*s0", "9223372036854775807"})
    EXPECT_EQ(parse_expr(text)->to_string(), text);
  EXPECT_EQ(*parse_expr(" -(s0-2) * - s1"), (s(0) - 2) * s(1));
  EXPECT_EQ(min(s(0), 128).to_string(), "min(s0, 128)");
  EXPECT_EQ(mod(s(0), 7).to_string(), "mod(s0, 7)");
  EXPECT_EQ((3 - 2 * mod(s(0) + 1, 7)).to_string(), "-2*mod(s0 + 1, 7) + 3");
  EXPECT_EQ((4 * ceildiv(s(0), 4)).to_string(), "4*floordiv(s0 + 3, 4)");
  EXPECT_EQ(max(min(s(0), s(1)), 2).to_string(), "max(min(s0, s1), 2)");
  EXPECT_EQ(max(max(s(0), s(1)), 2).to_string(), "max(s0, s1, 2)");
}

TEST(Expr, ParserRefusesNonsense) {
  const std::string deep(100000, '(');
  std::string negations(100001, '-');
  negations.back() = '1';
  EXPECT_TRUE(parse_expr(negations).has_value());
  std::string chain = "max(0";
  for (int i = 0; i < 100000; ++i) chain += ", s" + std::to_string(i);
  for (const std::string& text :
       {std::string(), std::string("1 +"), std::string("s"), std::string("s99999999999"), std::string("1 2"),
        std::string("9223372036854775808"), std::string("-9223372036854775809"), std::string("floordiv(s0, 0)"),
        std::string("min(1)"), std::string("foo"), std::string("max(1, 2"), std::string("invalid"),
        std::string("9223372036854775807 + 1"), deep, chain + ")"}) {
    const auto e = parse_expr(text);
    ASSERT_FALSE(e.has_value()) << text.substr(0, 40);
    EXPECT_EQ(e.error().code, ErrorCode::text_syntax);
  }
}

TEST(Expr, SizeIsBounded) {
  Expr sum;
  for (SymbolId i = 0; i < 40; ++i) sum += s(i);
  EXPECT_TRUE((sum * sum).is_valid());
  EXPECT_FALSE((sum * sum * sum).is_valid());
  Expr doubling = s(0);
  for (int i = 0; i < 200 && doubling.is_valid(); ++i) doubling = floordiv(doubling * s(1) + 1, doubling + s(2));
  EXPECT_FALSE(doubling.is_valid());
}

TEST(Expr, Ranges) {
  const std::array<Range, 3> ranges = {Range{1, 8}, Range{-3, 5}, Range{0, Range::kUnbounded}};
  EXPECT_EQ((2 * s(0) + 1).range(ranges), (Range{3, 17}));
  EXPECT_EQ((s(1) * s(1)).range(ranges), (Range{0, 25}));
  EXPECT_EQ(s(2).range(ranges), (Range{0, Range::kUnbounded}));
  EXPECT_EQ((s(2) - 5).range(ranges), (Range{-5, Range::kUnbounded}));
  EXPECT_EQ((s(0) * s(2)).range(ranges), (Range{0, Range::kUnbounded}));
  EXPECT_EQ(floordiv(s(2), s(0)).range(ranges), (Range{0, Range::kUnbounded}));
  EXPECT_EQ(floordiv(s(1), 2).range(ranges), (Range{-2, 2}));
  EXPECT_EQ(mod(s(2), 7).range(ranges), (Range{0, 6}));
  EXPECT_EQ(min(s(2), 7).range(ranges), (Range{0, 7}));
  EXPECT_EQ((s(2) - mod(s(2), 7)).range(ranges), (Range{0, Range::kUnbounded}));
  EXPECT_EQ((7 * floordiv(s(2) + 24, 28) - floordiv(s(2), 4)).range(ranges), (Range{0, 6}));
  EXPECT_EQ((min(s(2), 128) - min(s(2), 64)).range(ranges), (Range{0, 64}));
  EXPECT_EQ(s(9).range(ranges), Range{});
  EXPECT_EQ((s(0) * INT64_MAX).range(ranges).max, Range::kUnbounded);
}

TEST(Expr, SubstituteSimplifies) {
  const std::array<Expr, 3> replacements = {Expr(2), s(0) * 4, Expr(6)};
  EXPECT_EQ((floordiv(s(1), s(0)) + s(3)).substitute(replacements), 2 * s(0) + s(3));
  EXPECT_EQ((s(0) * s(2)).substitute(replacements).as_constant(), 12);
  EXPECT_FALSE(floordiv(s(5), s(0) - 2).substitute(replacements).is_valid());
}

TEST(Shape, VolumeAndConstants) {
  EXPECT_EQ(volume({s(0), 3, s(1)}), 3 * s(0) * s(1));
  EXPECT_EQ(volume({}).as_constant(), 1);
  EXPECT_EQ(as_constant(Shape{2, 3}), (Dims{2, 3}));
  EXPECT_EQ(as_constant(Shape{s(0), 3}), std::nullopt);
  EXPECT_EQ(*as_constant(to_shape(Dims{4, 5})), (Dims{4, 5}));
}

// A random expression, built with and without simplification: the plain value is computed beside it.
struct Sample {
  Expr expr;
  std::optional<__int128> value;  // nullopt: undefined somewhere
};

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {
    for (int64_t& value : values) value = pick(-9, 30);
  }

  Sample next(int depth) {
    const int64_t choice = pick(0, depth == 0 ? 2 : 12);
    if (choice == 0) return leaf(pick(-12, 12));
    if (choice <= 2) {
      const auto id = static_cast<SymbolId>(pick(0, 3));
      return {Expr::symbol(id), values[id]};
    }
    const Sample a = next(depth - 1), b = next(depth - 1);
    const bool defined = a.value && b.value;
    const __int128 x = a.value.value_or(0), y = b.value.value_or(0);
    switch (choice) {
      case 3:
      case 4:
        return {a.expr + b.expr, keep(defined, x + y)};
      case 5:
        return {a.expr - b.expr, keep(defined, x - y)};
      case 6:
      case 7:
        return {a.expr * b.expr, keep(defined, x * y)};
      case 8:
        return {floordiv(a.expr, b.expr), y == 0 ? std::nullopt : keep(defined, floor_of(x, y))};
      case 9:
        return {mod(a.expr, b.expr), y == 0 ? std::nullopt : keep(defined, x - y * floor_of(x, y))};
      case 10:
        return {min(a.expr, b.expr), keep(defined, std::min(x, y))};
      case 11:
        return {broadcast_dim(a.expr, b.expr),
                x == 1 || y == 1 || x == y ? keep(defined, x == 1 ? y : x) : std::nullopt};
      default:
        return {max(a.expr, b.expr), keep(defined, std::max(x, y))};
    }
  }

  std::array<int64_t, 4> values{};

 private:
  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  static Sample leaf(int64_t value) { return {Expr(value), value}; }
  static std::optional<__int128> keep(bool defined, __int128 value) {
    const __int128 limit = INT64_MAX;
    return defined && value <= limit && value >= -limit ? std::optional(value) : std::nullopt;
  }
  static __int128 floor_of(__int128 x, __int128 y) { return x / y - (x % y != 0 && (x < 0) != (y < 0)); }

  std::mt19937 random_;
};

TEST(ExprProperty, SimplificationKeepsValues) {
  int defined = 0;
  for (uint32_t seed = 0; seed < 66000; ++seed) {
    Generator generator(seed);
    const Sample sample = generator.next(2 + static_cast<int>(seed % 4));
    if (!sample.value) continue;
    if (!sample.expr.is_valid()) continue;  // size limit or a coefficient that overflowed
    ++defined;
    const auto value = sample.expr.evaluate(generator.values);
    ASSERT_TRUE(value.has_value()) << seed << ": " << sample.expr.to_string();
    ASSERT_EQ(*value, static_cast<int64_t>(*sample.value)) << seed << ": " << sample.expr.to_string();
  }
  EXPECT_GT(defined, 40000);
}

TEST(ExprProperty, TextRoundTripsAndHashAgrees) {
  for (uint32_t seed = 0; seed < 30000; ++seed) {
    const Expr e = Generator(seed).next(2 + static_cast<int>(seed % 4)).expr;
    if (!e.is_valid()) continue;
    const auto back = parse_expr(e.to_string());
    ASSERT_TRUE(back.has_value()) << seed << ": " << e.to_string();
    ASSERT_EQ(*back, e) << seed << ": " << e.to_string() << " read as " << back->to_string();
    ASSERT_EQ(back->hash(), e.hash());
    const std::array<Expr, 4> same = {Expr::symbol(0), Expr::symbol(1), Expr::symbol(2), Expr::symbol(3)};
    ASSERT_EQ(e.substitute(same), e) << seed << ": " << e.to_string();
  }
}

TEST(ExprProperty, RangeIsSound) {
  for (uint32_t seed = 0; seed < 30000; ++seed) {
    Generator generator(seed);
    const Expr e = generator.next(2 + static_cast<int>(seed % 3)).expr;
    if (!e.is_valid()) continue;
    std::mt19937 random(seed + 1);
    std::array<Range, 4> ranges;
    for (Range& range : ranges) {
      const int64_t low = static_cast<int64_t>(random() % 30) - 15;
      range = {low, low + static_cast<int64_t>(random() % 20)};
    }
    const Range range = e.range(ranges);
    for (int trial = 0; trial < 16; ++trial) {
      std::array<int64_t, 4> values;
      for (size_t i = 0; i < 4; ++i) {
        const auto width = static_cast<uint32_t>(ranges[i].max - ranges[i].min + 1);
        values[i] = trial < 2 ? (trial ? ranges[i].max : ranges[i].min)
                              : ranges[i].min + static_cast<int64_t>(random() % width);
      }
      const auto value = e.evaluate(values);
      if (!value) continue;
      ASSERT_GE(*value, range.min) << seed << ": " << e.to_string();
      ASSERT_LE(*value, range.max) << seed << ": " << e.to_string();
    }
  }
}

// Bounds that leave 64 bits on the way must not look exact afterwards.
TEST(ExprProperty, RangeIsSoundAtTheEdges) {
  const std::array<int64_t, 8> edges = {INT64_MIN, INT64_MIN + 1, -INT64_MAX / 2, -3,
                                        2,         INT64_MAX / 3, INT64_MAX - 1,  INT64_MAX};
  for (uint32_t seed = 0; seed < 30000; ++seed) {
    std::mt19937 random(seed);
    const auto edge = [&] { return edges[random() % edges.size()]; };
    const Expr x = s(0) * edge() + edge(), y = s(1) * edge() + edge();
    const std::array<Expr, 6> all = {
        x + y, x - y, floordiv(x, y), mod(x, y), floordiv(min(x, y), s(2) * edge()), max(x, y) * s(2)};
    std::array<Range, 3> ranges;
    std::array<int64_t, 3> values;
    for (size_t i = 0; i < 3; ++i) {
      values[i] = random() % 2 ? static_cast<int64_t>(random() % 7) - 3 : edge();
      const int64_t least = std::max<int64_t>(values[i], -INT64_MAX);
      ranges[i] = {least, least};
      if (random() % 2) ranges[i].min = -Range::kUnbounded;
      if (random() % 2) ranges[i].max = Range::kUnbounded;
      if (values[i] == INT64_MIN) values[i] = -INT64_MAX;
    }
    for (const Expr& e : all) {
      const auto value = e.evaluate(values);
      if (!value) continue;
      const Range range = e.range(ranges);
      ASSERT_GE(*value, range.min == -Range::kUnbounded ? INT64_MIN : range.min) << seed << ": " << e.to_string();
      ASSERT_LE(*value, range.max) << seed << ": " << e.to_string();
    }
  }
}

TEST(ExprProperty, SubstitutionCommutesWithEvaluation) {
  for (uint32_t seed = 0; seed < 20000; ++seed) {
    Generator generator(seed);
    const Sample sample = generator.next(3);
    std::array<Expr, 4> numbers;
    for (size_t i = 0; i < 4; ++i) numbers[i] = generator.values[i];
    if (!sample.value || !sample.expr.is_valid()) continue;
    ASSERT_EQ(sample.expr.substitute(numbers).as_constant(), static_cast<int64_t>(*sample.value))
        << seed << ": " << sample.expr.to_string();
  }
}

}  // namespace
}  // namespace lathe
