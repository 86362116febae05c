// SPDX-License-Identifier: Apache-2.0
// Attention of few queries on the emulator: contexts that are not full, what hides keys, sizes of heads and of groups.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/attention_problem.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/kernel_check.h"
#include "ops/rules.h"

namespace lathe::cuda {

const Tactic& attention_tactic();

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Sizes {
  int64_t batch = 1, heads = 4, kv_heads = 1, queries = 1, keys = 200, size = 64, value_size = 64;
};

class DecodeAttentions : public testing::Test {
 protected:
  static Problem problem(const AttentionAttrs& attrs, DType dtype, const Sizes& s,
                         const std::vector<Operand>& mask = {}) {
    Problem made = attention_problem(attrs, dtype, s, mask);
    made.tf32 = dtype == DType::f32;
    return made;
  }
  // The forms for few queries only: with and without a cluster.
  static void check(const Problem& problem, CheckOptions options = {}, int64_t least = 2) {
    options.tolerance = problem.inputs[0].dtype == DType::bf16 ? 3e-2 : 4e-3;
    options.round_prologues = true;
    int64_t checked = 0;
    for (const Config& config : configs_of(attention_tactic(), problem)) {
      if (config.text.find(" rows x keys") == std::string::npos) continue;
      const Result<> result = check_kernel(test_backend(), attention_tactic(), problem, config, options);
      EXPECT_TRUE(result) << config.text << "\n" << to_text(problem) << "\n" << result.error().message;
      ++checked;
    }
    EXPECT_GE(checked, least) << to_text(problem);
  }
  static AttentionAttrs attributes(double hidden = -kInfinity) {
    AttentionAttrs attrs;
    attrs.scale = 0.125;
    attrs.hidden = hidden;
    return attrs;
  }
  static Tensor filled(DType dtype, const Dims& dims, const std::function<double(int64_t)>& of) {
    Tensor tensor = *Tensor::allocate(dtype, dims);
    std::vector<double> values;
    for (int64_t i = 0; i < tensor.volume(); ++i) values.push_back(of(i));
    from_doubles(values, tensor);
    return tensor;
  }
  // [batch, 1, queries, keys]: batch b sees the first lengths[b] keys.
  static Tensor lengths_mask(DType dtype, const Sizes& s, const std::vector<int64_t>& lengths, double seen,
                             double hidden) {
    return filled(dtype, {s.batch, 1, s.queries, s.keys}, [&](int64_t i) {
      return i % s.keys < lengths[static_cast<size_t>(i / (s.queries * s.keys))] ? seen : hidden;
    });
  }
};

// Memory behind a length may hold anything: it has no part in the result.
TEST_F(DecodeAttentions, LengthsOfTexts) {
  const Sizes s = {3, 4, 2, 1, 300};
  const std::vector<int64_t> lengths = {5, 300, 130};
  const auto cache = [&](int64_t size) {
    return filled(DType::f16, {s.batch, s.kv_heads, s.keys, size}, [&](int64_t i) {
      const int64_t key = i / size % s.keys, text = i / (size * s.keys * s.kv_heads);
      return key < lengths[static_cast<size_t>(text)] ? std::sin(static_cast<double>(i * 7 % 1013)) : std::nan("");
    });
  };
  CheckOptions options;
  options.inputs = {Tensor(), cache(64), cache(64), lengths_mask(DType::boolean, s, lengths, 1, 0)};
  check(problem(attributes(), DType::f16, s, {operand(DType::boolean, {3, 1, 1, 300})}), options);
}

TEST_F(DecodeAttentions, SeveralQueriesOfGroups) {
  for (const Sizes& s : {Sizes{2, 8, 2, 4, 150}, Sizes{1, 8, 2, 16, 90, 32, 32}, Sizes{1, 3, 1, 5, 70, 80, 72}}) {
    AttentionAttrs attrs = attributes();
    attrs.causal = true;
    attrs.softcap = 3;
    check(problem(attrs, DType::bf16, s), {}, 1);
    const Tensor mask = filled(DType::boolean, {s.queries, s.keys},
                               [&](int64_t i) { return i % s.keys <= s.keys - s.queries + i / s.keys && i % 7 != 3; });
    CheckOptions options;
    options.inputs = {Tensor(), Tensor(), Tensor(), mask};
    check(problem(attributes(), DType::f16, s, {operand(DType::boolean, {s.queries, s.keys})}), options, 1);
  }
}

TEST_F(DecodeAttentions, SizesOfHeads) {
  for (const auto& [size, value_size] : {std::pair(256, 256), {96, 24}, {40, 128}, {128, 64}})
    check(problem(attributes(), DType::f16, {1, 2, 1, 1, 150, size, value_size}), {}, 1);
  for (const auto& [size, value_size] : {std::pair(128, 128), {20, 36}, {64, 4}})
    check(problem(attributes(), DType::f32, {1, 2, 1, 1, 150, size, value_size}), {}, 1);
}

// A text that sees no key has the mean of all values, zeros or NaN; numbers that hide little have weight.
TEST_F(DecodeAttentions, WhatHidesKeys) {
  const Sizes s = {2, 4, 2, 1, 140};
  const Operand booleans = operand(DType::boolean, {2, 1, 1, 140});
  CheckOptions options;
  for (const double hidden : {-3.4028234663852886e+38, -100.0, -2.0, -kInfinity})
    for (const int64_t shortest : {0, 3}) {
      AttentionAttrs attrs = attributes(hidden);
      attrs.zeros_for_nan = std::isinf(hidden);
      options.inputs = {Tensor(), Tensor(), Tensor(), lengths_mask(DType::boolean, s, {shortest, 77}, 1, 0)};
      check(problem(attrs, DType::f16, s, {booleans}), options);
    }
}

// What is before a window may be anything.
TEST_F(DecodeAttentions, Windows) {
  for (const int64_t queries : {1, 3}) {
    AttentionAttrs attrs = attributes();
    attrs.causal = true, attrs.window = 130;
    const Sizes s = {2, 4, 2, queries, 300};
    CheckOptions options;
    options.inputs = {Tensor(), numbers_from(160, DType::f16, {2, 2, 300, 64}),
                      numbers_from(160, DType::f16, {2, 2, 300, 64})};
    check(problem(attrs, DType::f16, s), options);
  }
}

TEST_F(DecodeAttentions, TextsThatSeeNoKeyHaveTheMeanOfAllValues) {
  const Sizes s = {2, 4, 2, 2, 140};
  AttentionAttrs attrs = attributes();
  attrs.causal = attrs.mean_for_none = true;
  CheckOptions options;
  options.inputs = {Tensor(), Tensor(), Tensor(), lengths_mask(DType::boolean, s, {0, 77}, 1, 0)};
  check(problem(attrs, DType::bf16, s, {operand(DType::boolean, {2, 1, 2, 140})}), options);
  attrs.window = 10;
  check(problem(attrs, DType::f16, s, {operand(DType::boolean, {2, 1, 2, 140})}), options, 1);
}

TEST_F(DecodeAttentions, NumbersAsMasks) {
  const Sizes s = {2, 4, 2, 1, 140};
  CheckOptions options;
  for (const double hidden : {-kInfinity, -3.4e38, -65504.0, -1.5})
    for (const int64_t shortest : {0, 3}) {
      if (std::isinf(hidden) && shortest == 0) continue;
      options.inputs = {Tensor(), Tensor(), Tensor(), lengths_mask(DType::f32, s, {shortest, 77}, 0.25, hidden)};
      for (const DType dtype : {DType::f16, DType::bf16, DType::f32})
        check(problem(attributes(), dtype, s, {operand(DType::f32, {2, 1, 1, 140})}), options);
    }
}

// A sink counts once, whatever the warps and blocks that share keys; a text that sees no key has zeros.
TEST_F(DecodeAttentions, Sinks) {
  const Sizes s = {2, 4, 2, 1, 300};
  const AttentionAttrs plain = attributes();
  CheckOptions options;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    Problem open = with_sinks(plain, dtype, s, {}, DType::f32);
    open.tf32 = dtype == DType::f32;
    check(open);
    for (const double hidden : {-kInfinity, -100.0}) {
      options.inputs = {Tensor(), Tensor(), Tensor(), lengths_mask(DType::boolean, s, {0, 77}, 1, 0)};
      const AttentionAttrs attrs = attributes(hidden);
      Problem masked = with_sinks(attrs, dtype, s, {operand(DType::boolean, {2, 1, 1, 300})}, dtype);
      masked.tf32 = dtype == DType::f32;
      check(masked, options);
    }
  }
  check(with_sinks(plain, DType::f16, Sizes{1, 8, 2, 4, 150}, {}, DType::f16), {}, 1);
}

TEST_F(DecodeAttentions, SizesKnownLater) {
  const std::vector<int64_t> symbols = {2, 3, 170};
  CheckOptions options;
  options.symbols = symbols;
  const Expr batch = Expr::symbol(0), queries = Expr::symbol(1), keys = Expr::symbol(2);
  DType dtype = DType::f16;
  const auto tensor = [&](int64_t heads, const Expr& length) {
    return symbolic_operand(dtype, {batch, heads, length, 64}, symbols);
  };
  const AttentionAttrs attrs = attributes();
  for (const DType each : {DType::f16, DType::f32}) {
    dtype = each;
    Problem open = op_problem(attrs, {tensor(4, queries), tensor(2, keys), tensor(2, keys)}, {tensor(4, queries)});
    open.tf32 = dtype == DType::f32;
    put_before(open, 0, "in=2; r2=add r0 r1; out r2", {operand(dtype, {64})});
    put_before(open, 2, "in=1; r1=affine r0 0.5 1; out r1", {});
    check(open, options);
  }
}

TEST_F(DecodeAttentions, HeadsInsideRows) {
  const AttentionAttrs attrs = attributes();
  const Operand q = strided_operand(DType::f16, {2, 4, 2, 64}, {512, 64, 256, 1});
  const Operand k = strided_operand(DType::f16, {2, 2, 90, 64}, {90 * 128, 64, 128, 1});
  check(op_problem(attrs, {q, k, k}, {q}, "in=2; r2=add r0 r1; out r2", {q}), {}, 1);
}

// Grids end at 65535 along y.
TEST_F(DecodeAttentions, BatchesMayBeLarge) {
  const std::vector<int64_t> symbols = {100000};
  for (const int64_t queries : {1, 64}) {
    const Operand q = symbolic_operand(DType::f16, {Expr::symbol(0), 4, queries, 64}, symbols);
    const Operand k = symbolic_operand(DType::f16, {Expr::symbol(0), 4, 32, 64}, symbols);
    const AttentionAttrs attrs = attributes();
    const Problem open = op_problem(attrs, {q, k, k}, {q});
    const std::vector<Config> configs = configs_of(attention_tactic(), open);
    EXPECT_FALSE(configs.empty());
    for (const Config& config : configs) {
      const Result<Emission> emission = emit(attention_tactic(), open, config);
      ASSERT_TRUE(emission) << emission.error().message;
      for (const size_t d : {1, 2})
        EXPECT_LT(emission->launches[0].launch.grid[d].evaluate(symbols), 65536) << config.text;
    }
  }
}

TEST_F(DecodeAttentions, AreForFewQueries) {
  for (const Config& config : configs_of(attention_tactic(), problem(attributes(), DType::f16, {1, 8, 1, 64, 512})))
    EXPECT_EQ(config.text.find(" rows x keys"), std::string::npos) << config.text;
  const auto configs = configs_of(attention_tactic(), problem(attributes(), DType::f16, {1, 32, 8, 1, 1024}));
  ASSERT_FALSE(configs.empty());
  EXPECT_NE(configs[0].text.find(" rows x keys"), std::string::npos) << configs[0].text;
}

}  // namespace
}  // namespace lathe::cuda
