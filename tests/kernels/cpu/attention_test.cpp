// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention_case.h"

namespace lathe::cpu {
namespace {

using attention::AttentionParams;
using Case = AttentionCase;

TEST(Attention, EverySize) {
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    const int64_t shared = pick_between(random, 1, 3);
    Case c{pick_between(random, 1, 2),  shared * pick_between(random, 1, 3), shared,
           pick_between(random, 1, 40), pick_between(random, 1, 150),        pick_between(random, 1, 70),
           pick_between(random, 1, 130)};
    c.attrs.scale = 0.3;
    c.attrs.causal = i % 2 == 0;
    c.attrs.factors = i % 4 < 2 ? DType::bf16 : DType::f32;
    expect_right(c, random);
  }
}

// Blocks of queries, and rows of scores that would be 4 KiB apart.
TEST(Attention, ManyQueriesAndKeys) {
  std::mt19937 random(2);
  for (const bool causal : {false, true}) {
    Case c{1, 2, 2, 265, 265, 32, 32};
    c.attrs.scale = 0.2;
    c.attrs.causal = causal;
    for (const DType factors : {DType::f32, DType::bf16}) {
      c.attrs.factors = factors;
      c.queries = c.keys = 265;
      expect_right(c, random);
      c.queries = 3, c.keys = 1024;
      expect_right(c, random);
      c.queries = 17;
      expect_right(c, random);
    }
  }
}

TEST(Attention, Masks) {
  std::mt19937 random(3);
  for (const DType type : {DType::f32, DType::boolean})
    for (const Dims& mask : {Dims{2, 4, 9, 37}, Dims{2, 1, 1, 37}, Dims{9, 1}, Dims{1, 4, 9, 37}, Dims{37}, Dims{1}})
      for (const bool causal : {false, true}) {
        Case c{2, 4, 2, 9, 37, 16, 24};
        c.attrs.scale = 0.3;
        c.attrs.softcap = causal ? 3 : 0;
        c.attrs.causal = causal;
        c.attrs.hidden = causal ? -HUGE_VAL : -1e30;
        c.attrs.zeros_for_nan = true;
        c.mask = mask, c.mask_type = type;
        expect_right(c, random);
        c.attrs.factors = DType::bf16;
        expect_right(c, random);
      }
}

// Of many keys few rows have room for their scores, and more of those that see few. Queries may be so many more than
// keys.
Case of_some_or_many_keys(std::mt19937& random, bool is_long, int64_t more_queries) {
  const int64_t keys = is_long ? 1100 : pick_between(random, 1, 400), shared = pick_between(random, 1, 2);
  return {pick_between(random, 1, 2),
          shared * pick_between(random, 1, 2),
          shared,
          is_long ? 150 : pick_between(random, 1, keys + more_queries),
          keys,
          33,
          40};
}

// Blocks of keys that a row's mask hides at either end are left out, but of rows of which it hides all.
TEST(Attention, KeysThatMasksHideAtEitherEnd) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity(), kLowest = std::numeric_limits<float>::lowest();
  std::mt19937 random(9);
  for (int i = 0; i < 40; ++i) {
    Case c = of_some_or_many_keys(random, i % 9 == 0, 0);
    c.attrs.scale = 0.3;
    c.attrs.zeros_for_nan = true;
    c.attrs.hidden = i % 3 == 0 ? kLowest : i % 3 == 1 ? -kInfinite : -3;
    c.attrs.causal = i % 5 == 0;
    c.attrs.factors = i % 4 < 2 ? DType::bf16 : DType::f32;
    c.mask = {c.batch, 1, c.queries, c.keys}, c.mask_type = i % 2 == 0 ? DType::boolean : DType::f32;
    c.window = pick_between(random, 1, 200);
    c.hides = i % 3 == 0 ? kLowest : i % 3 == 1 ? -kInfinite : -6e29f;
    c.has_sinks = i % 7 == 0;
    expect_right(c, random);
  }
}

// Windows that begin anywhere in a block of keys, on one side or both, beside padding that may hide all of them.
TEST(Attention, Windows) {
  std::mt19937 random(10);
  for (int i = 0; i < 60; ++i) {
    Case c = of_some_or_many_keys(random, i % 9 == 0, 20);
    c.attrs.scale = i % 6 == 0 ? -0.3 : 0.3;
    c.attrs.causal = i % 3 != 0;
    c.attrs.window = pick_between(random, 1, 200);
    c.attrs.factors = i % 4 < 2 ? DType::bf16 : DType::f32;
    c.attrs.softcap = i % 11 == 0 ? 2 : 0;
    c.attrs.mean_for_none = i % 2 == 0;
    if (i % 5 != 0) {
      c.mask = {c.batch, 1, c.queries, c.keys};
      c.mask_type = i % 2 == 0 || i % 7 == 0 ? DType::boolean : DType::f32;
      c.window = pick_between(random, 1, 200), c.hides = -6e29f;
    }
    c.has_sinks = !c.attrs.mean_for_none && i % 7 == 0;
    expect_right(c, random);
  }
}

// What is added by distances, alone and beside masks and sinks, in windows, of fewer and more keys than queries.
TEST(Attention, Distances) {
  std::mt19937 random(12);
  for (int i = 0; i < 60; ++i) {
    Case c = of_some_or_many_keys(random, i % 9 == 0, 20);
    c.attrs.causal = i % 3 != 0;
    c.attrs.window = i % 4 == 0 ? pick_between(random, 1, 200) : 0;
    c.attrs.factors = i % 4 < 2 ? DType::bf16 : DType::f32;
    c.attrs.softcap = i % 11 == 0 ? 2 : 0;
    c.attrs.mean_for_none = i % 2 == 0;
    if (i % 5 != 0) {
      c.mask = {c.batch, 1, i % 3 == 0 ? 1 : c.queries, c.keys};
      c.mask_type = i % 2 == 0 ? DType::boolean : DType::f32;
    }
    c.attrs.zeros_for_nan = true;
    c.has_sinks = !c.attrs.mean_for_none && i % 7 == 0;
    c.distances = i % 6 == 1 ? 1 : c.heads;
    expect_right(c, random);
  }
}

// A mask of one number for all keys, and of none in a row.
TEST(Attention, MeansOfAllValues) {
  std::mt19937 random(11);
  for (const Dims& mask : {Dims{2, 4, 9, 37}, Dims{2, 1, 1, 37}, Dims{9, 1}, Dims{1}, Dims{}})
    for (const DType factors : {DType::f32, DType::bf16}) {
      Case c{2, 4, 2, 9, 37, 16, 24};
      c.attrs.causal = c.attrs.mean_for_none = true;
      c.attrs.window = 1;
      c.attrs.factors = factors;
      c.mask = mask, c.mask_type = DType::boolean;
      expect_right(c, random);
      c.attrs.window = 0;
      if (mask.empty()) c.keys = 4;
      expect_right(c, random);
    }
}

TEST(Attention, WhatIsOutsideOfWindowsIsNotRead) {
  for (const bool bf16 : {false, true}) {
    TestTensor q({1, 1, 40, 16}), k({1, 1, 300, 16}), v({1, 1, 300, 16}), out({1, 1, 40, 16});
    std::mt19937 random(7);
    for (TestTensor* tensor : {&q, &k, &v}) tensor->fill(random, 1);
    for (TestTensor* tensor : {&k, &v})
      tensor->for_each([&](const Dims& at, float& x) { x = at[2] < 192 ? std::nanf("") : x; });
    const AttentionParams params{
        .scale = 0.5f, .causal = true, .bf16 = bf16, .window = 60};  // from 300 - 40 - 60 + 1 on
    run_kernel(*make_kernel("attention", params), {q.arg, k.arg, v.arg}, {out.arg}, 1);
    out.for_each([&](const Dims&, float& x) { EXPECT_FALSE(std::isnan(x)); });
  }
}

// What lies behind the last key of a cache may be anything.
TEST(Attention, WhatIsHiddenIsNotRead) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  for (const DType type : {DType::boolean, DType::f32})
    for (const int64_t queries : {1, 40, 256})
      for (const bool bf16 : {false, true}) {
        TestTensor q({1, 1, queries, 32}), k({1, 1, 300, 32}), v({1, 1, 300, 16}), out({1, 1, queries, 16});
        std::mt19937 random(7);
        for (TestTensor* tensor : {&q, &k, &v}) tensor->fill(random, 1);
        for (TestTensor* tensor : {&k, &v})
          tensor->for_each([&](const Dims& at, float& x) { x = at[2] < 64 || at[2] >= 192 ? kNaN : x; });
        TestTensor mask({1, 300}, {}, 0, type);
        for (int64_t j = 0; j < 300; ++j) {
          const bool is_shown = j > 70 && j < 190;
          if (type == DType::boolean)
            mask.arg.as<uint8_t>()[j] = is_shown;
          else
            mask.arg.as<float>()[j] = is_shown ? 0 : -1e35f;
        }
        const AttentionParams params{.scale = 0.5f, .hidden = -1e35f, .masked = true, .bf16 = bf16};
        run_kernel(*make_kernel("attention", params), {q.arg, k.arg, v.arg, mask.arg}, {out.arg}, 1);
        out.for_each([&](const Dims&, float& x) { EXPECT_FALSE(std::isnan(x)); });
      }
}

// Weights are made of products as they are only where those are ordered as the scores.
TEST(Attention, AnyScale) {
  std::mt19937 random(6);
  for (const DType factors : {DType::f32, DType::bf16})
    for (const double scale : {-0.4, 0.0, 5.0}) {
      Case c{1, 2, 2, 35, 70, 32, 16};
      c.attrs.scale = scale;
      c.attrs.factors = factors;
      expect_right(c, random);
    }
}

// A sink has weight beside the keys of any score, and where none is seen.
TEST(Attention, Sinks) {
  std::mt19937 random(8);
  for (int i = 0; i < 60; ++i) {
    const int64_t shared = pick_between(random, 1, 3);
    Case c{pick_between(random, 1, 2),  shared * pick_between(random, 1, 3), shared,
           pick_between(random, 1, 40), pick_between(random, 0, 80),         pick_between(random, 1, 70),
           pick_between(random, 1, 70)};
    c.has_sinks = true;
    c.attrs.scale = i % 8 == 7 ? -0.3 : 0.3;
    c.attrs.causal = i % 2 == 0;
    c.attrs.factors = i % 4 < 2 ? DType::bf16 : DType::f32;
    if (i % 3 == 1) c.mask = {c.queries, c.keys}, c.mask_type = i % 6 == 1 ? DType::boolean : DType::f32;
    expect_right(c, random);
  }
}

// More queries than keys: the first see none.
TEST(Attention, QueriesThatSeeNoKey) {
  std::mt19937 random(4);
  for (const bool zeros : {false, true}) {
    Case c{1, 2, 1, 30, 11, 8, 8};
    c.attrs.causal = true;
    c.attrs.zeros_for_nan = zeros;
    expect_right(c, random);
    c.attrs.factors = DType::bf16;
    expect_right(c, random);
    c.keys = 0;
    expect_right(c, random);
  }
}

TEST(Attention, RunsTheProgramBehindIt) {
  std::mt19937 random(5);
  const Program program = program_of("in=3; r3=add r0 r1; r4=mul r3 r2; r5=relu r4; out r5");
  TestTensor q({1, 2, 20, 16}), k({1, 2, 33, 16}), v({1, 2, 33, 70}), plain({1, 2, 20, 70}), out({1, 2, 20, 70});
  TestTensor all({1, 2, 20, 70}), columns({1, 1, 1, 70});
  for (TestTensor* tensor : {&q, &k, &v, &all, &columns}) tensor->fill(random, 2);
  const AttentionParams params{.scale = 0.25f};
  run_kernel(*make_kernel("attention", params), {q.arg, k.arg, v.arg}, {plain.arg}, 1);
  run_kernel(*make_kernel("attention", params, &program), {q.arg, k.arg, v.arg, all.arg, columns.arg}, {out.arg}, 3);
  plain.for_each([&](const std::vector<int64_t>& at, float& x) {
    const float want = std::max(0.0f, (x + all.at(at)) * columns.at({0, 0, 0, at[3]}));
    ASSERT_NEAR(out.at(at), want, 1e-5 * std::max(1.0f, std::fabs(want)));
  });
}

TEST(Attention, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("attention");
  for (const std::vector<int64_t>& params : std::vector<std::vector<int64_t>>{
           {}, {0, 0, 0, 2, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 2}, {0, 0, 0, 0, 0, 0, 0, 2}, {0, 0, 0, 0, 0, 0}})
    EXPECT_FALSE(factory(Record{params, nullptr}));
  TestTensor q({1, 4, 5, 8}), k({1, 2, 7, 8}), v({1, 2, 7, 6}), out({1, 4, 5, 6}), odd({1, 3, 7, 8}), mask({5, 6});
  const auto fits = [&](const TestTensor& keys, const std::vector<TensorArg>& more, bool masked) {
    std::vector<TensorArg> inputs = {q.arg, keys.arg, v.arg};
    inputs.insert(inputs.end(), more.begin(), more.end());
    return static_cast<bool>(
        make_kernel("attention", AttentionParams{.masked = masked})->check(inputs, std::vector{out.arg}));
  };
  EXPECT_TRUE(fits(k, {}, false));
  EXPECT_FALSE(fits(odd, {}, false));
  EXPECT_FALSE(fits(k, {}, true));
  EXPECT_FALSE(fits(k, {mask.arg}, true));
  EXPECT_FALSE(fits(k, {mask.arg}, false));
  const std::vector<int64_t> of_a_release(7, 0);
  EXPECT_TRUE(factory(Record{of_a_release, nullptr}));
  TestTensor sinks({4}), others({3});
  const auto takes = [&](const TestTensor& x) {
    return static_cast<bool>(make_kernel("attention", AttentionParams{.has_sinks = true})
                                 ->check(std::vector{q.arg, k.arg, v.arg, x.arg}, std::vector{out.arg}));
  };
  const auto sees = [&](const AttentionParams& params, const std::vector<TensorArg>& more) {
    std::vector<TensorArg> inputs = {q.arg, k.arg, v.arg};
    inputs.insert(inputs.end(), more.begin(), more.end());
    return static_cast<bool>(make_kernel("attention", params)->check(inputs, std::vector{out.arg}));
  };
  TestTensor numbers({5, 7});
  EXPECT_TRUE(sees({.window = 3, .mean_for_none = true}, {}));
  EXPECT_FALSE(sees({.window = -1}, {}));
  EXPECT_FALSE(sees({.window = int64_t{1} << 40}, {}));
  EXPECT_TRUE(sees({.masked = true, .mean_for_none = true}, {numbers.arg}));
  EXPECT_FALSE(sees({.has_sinks = true, .mean_for_none = true}, {sinks.arg}));
  TestTensor row({1, 11}), rows({4, 11}), of_shared({2, 11}), shorter({4, 10});
  for (const TestTensor* distances : {&row, &rows}) EXPECT_TRUE(sees({.has_distances = true}, {distances->arg}));
  for (const TestTensor* distances : {&of_shared, &shorter, &sinks, &numbers})
    EXPECT_FALSE(sees({.has_distances = true}, {distances->arg}));
  EXPECT_FALSE(sees({.has_distances = true}, {}));
  EXPECT_TRUE(takes(sinks));
  EXPECT_FALSE(takes(others));
  EXPECT_FALSE(takes(mask));
}

}  // namespace
}  // namespace lathe::cpu
