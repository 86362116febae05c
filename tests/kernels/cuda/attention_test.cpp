// SPDX-License-Identifier: Apache-2.0
// Attention on the emulator: tensor cores and f32, tails, masks, causality, shared heads, layouts.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/attention_problem.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/kernel_check.h"
#include "ops/rules.h"

namespace lathe::cuda {

const Tactic& attention_tactic();

namespace {

struct Sizes {
  int64_t batch = 1, heads = 2, kv_heads = 2, queries = 16, keys = 16, size = 16, value_size = 16;
};

class Attentions : public testing::Test {
 protected:
  static Problem problem(const AttentionAttrs& attrs, DType dtype, const Sizes& s,
                         const std::vector<Operand>& mask = {}) {
    return attention_problem(attrs, dtype, s, mask);
  }
  void check(const Problem& problem, CheckOptions options = {}) {
    options.round_prologues = true;
    // Weights are rounded to the type before they meet the values.
    if (problem.inputs[0].dtype == DType::f16 || problem.tf32) options.tolerance = 4e-3;
    if (problem.inputs[0].dtype == DType::bf16) options.tolerance = 3e-2;
    const Result<> checked = check_tactic(test_backend(), attention_tactic(), problem, options);
    EXPECT_TRUE(checked) << to_text(problem) << "\n" << checked.error().message;
  }
  static Problem as_tf32(Problem problem) {
    problem.tf32 = true;
    EXPECT_TRUE(configs_of(attention_tactic(), problem).front().text.find("x keys") != std::string::npos);
    return problem;
  }
};

TEST_F(Attentions, LargeHeads) {
  const AttentionAttrs attrs = attention_attributes(0.0625);
  check(problem(attrs, DType::f16, {1, 1, 1, 20, 40, 256, 256}));
}

// Of all forms: on tensor cores and in f32, with and without clusters.
TEST_F(Attentions, TilesOutsideOfWindowsAreNotLoaded) {
  const AttentionAttrs attrs = window_attributes(0.25, true, 20);
  CheckOptions options;
  for (const DType dtype : {DType::f16, DType::f32}) {
    options.inputs = {Tensor(), numbers_from(128, dtype, {1, 2, 320, 16}), numbers_from(128, dtype, {1, 2, 320, 16})};
    check(problem(attrs, dtype, {1, 2, 2, 40, 320}), options);  // from key 320 - 40 - 20 + 1 on
  }
}

// f32, whose products are those of TF32: sizes that no tile is, heads in the tiles' registers and not.
TEST_F(Attentions, Tf32) {
  const AttentionAttrs attrs = attention_attributes(0.25), causal = attention_attributes(0.25, true, 5.0);
  for (const Sizes& sizes : {Sizes{2, 4, 2, 40, 70, 32, 24},
                             {1, 2, 2, 16, 33, 64, 64},
                             {1, 1, 1, 20, 40, 128, 128},
                             {1, 2, 2, 7, 9, 20, 4},
                             {1, 1, 1, 1, 300, 64, 64}})
    check(as_tf32(problem(attrs, DType::f32, sizes)));
  check(as_tf32(problem(causal, DType::f32, {1, 4, 2, 70, 70, 16, 16}, {operand(DType::f32, {70, 70})})));
  check(as_tf32(problem(causal, DType::f32, {2, 2, 1, 33, 40, 16, 32})));
  Problem computed = problem(attrs, DType::f32, {2, 4, 2, 40, 70, 32, 24});
  put_before(computed, 0, "in=3; r3=add r0 r1; r4=mul r3 r2; out r4",
             {operand(DType::f32, {4, 1, 32}), computed.inputs[0]});
  put_before(computed, 1, "in=2; r2=add r0 r1; out r2", {operand(DType::f32, {2, 1, 70, 1})});
  put_before(computed, 2, "in=2; r2=add r0 r1; out r2", {operand(DType::f32, {24})});
  check(as_tf32(computed));
  const auto view = strided_operand(DType::f32, {2, 3, 20, 16}, {20 * 48, 16, 48, 1});
  check(as_tf32(op_problem(attrs, {view, view, view}, {view}, "in=2; r2=add r0 r1; out r2", {view})));
}

TEST_F(Attentions, Masks) {
  const AttentionAttrs attrs = attention_attributes(0.5, false, 3.0);
  const Sizes sizes = {2, 2, 2, 18, 35, 16, 16};
  check(problem(attrs, DType::f16, sizes, {operand(DType::f16, {2, 1, 18, 35})}));
  check(problem(attrs, DType::f16, sizes, {operand(DType::f32, {35})}));
  check(problem(attrs, DType::f32, sizes, {operand(DType::f32, {2, 1, 1, 35})}));
  CheckOptions options;
  Tensor mask = *Tensor::allocate(DType::boolean, {2, 1, 18, 35});
  for (int64_t i = 0; i < mask.volume(); ++i) mask.mutable_as<bool>()[i] = i % 35 == i / 35 || i * 7 % 5 < 2;
  options.inputs = {Tensor(), Tensor(), Tensor(), mask};
  check(problem(attrs, DType::f16, sizes, {operand(DType::boolean, {2, 1, 18, 35})}), options);
  check(problem(attrs, DType::f32, sizes, {operand(DType::boolean, {2, 1, 18, 35})}), options);
}

TEST_F(Attentions, RowsThatSeeNothing) {
  const AttentionAttrs attrs = attention_attributes(1);
  CheckOptions options;
  Tensor mask = *Tensor::allocate(DType::boolean, {16, 16});
  for (int64_t i = 0; i < mask.volume(); ++i) mask.mutable_as<bool>()[i] = i / 16 != 3;
  options.inputs = {Tensor(), Tensor(), Tensor(), mask};
  check(problem(attrs, DType::f16, {}, {operand(DType::boolean, {16, 16})}), options);
  check(problem(attrs, DType::f32, {}, {operand(DType::boolean, {16, 16})}), options);
}

TEST_F(Attentions, Sinks) {
  const AttentionAttrs attrs = attention_attributes(0.5, false, 3.0), causal = attention_attributes(0.5, true);
  const Sizes sizes = {2, 4, 2, 18, 70, 16, 24}, odd = {1, 2, 2, 9, 35, 11, 13};
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32})
    for (const DType type : {dtype, DType::f32}) {
      check(with_sinks(attrs, dtype, sizes, {}, type));
      check(with_sinks(causal, dtype, sizes, {operand(DType::f32, {70})}, type));
      check(with_sinks(causal, dtype, odd, {}, type));
    }
  check(as_tf32(with_sinks(causal, DType::f32, Sizes{2, 4, 2, 40, 70, 32, 24}, {}, DType::f32)));
  check(with_sinks(attrs, DType::f16, Sizes{1, 2, 2, 20, 400, 32, 32}, {}, DType::f16));  // in clusters
}

// A query that sees no key has zeros, unless its sink is -inf.
TEST_F(Attentions, SinksOfRowsThatSeeNothing) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  CheckOptions options;
  Tensor mask = *Tensor::allocate(DType::boolean, {16, 16}), sinks = *Tensor::allocate(DType::f32, {2});
  for (int64_t i = 0; i < mask.volume(); ++i) mask.mutable_as<bool>()[i] = i / 16 != 3;
  for (const double first : {-kInfinity, -300.0, 300.0, std::nan("")})
    for (const bool zeros : {false, true}) {
      AttentionAttrs attrs = attention_attributes(1);
      attrs.zeros_for_nan = zeros;
      from_doubles(std::vector{first, 0.5}, sinks);
      options.inputs = {Tensor(), Tensor(), Tensor(), mask, sinks};
      for (const DType dtype : {DType::f16, DType::f32})
        check(with_sinks(attrs, dtype, Sizes{}, {operand(DType::boolean, {16, 16})}, DType::f32), options);
    }
}

TEST_F(Attentions, HeadsInsideRows) {
  // [batch, sequence, heads, size] seen as [batch, heads, sequence, size].
  const AttentionAttrs attrs = attention_attributes(0.25);
  const auto view = [](DType dtype) { return strided_operand(dtype, {2, 3, 20, 16}, {20 * 48, 16, 48, 1}); };
  for (const DType dtype : {DType::f16, DType::f32})
    check(op_problem(attrs, {view(dtype), view(dtype), view(dtype)}, {view(dtype)}, "in=2; r2=add r0 r1; out r2",
                     {view(dtype)}));
}

TEST_F(Attentions, SequencesKnownLater) {
  const std::vector<int64_t> symbols = {2, 21, 37};
  CheckOptions options;
  options.symbols = symbols;
  const AttentionAttrs attrs = attention_attributes(0.25, true);
  const auto tensor = [&](size_t length) {
    return symbolic_operand(DType::f16, {Expr::symbol(0), 2, Expr::symbol(static_cast<SymbolId>(length)), 16}, symbols);
  };
  check(op_problem(attrs, {tensor(1), tensor(2), tensor(2)}, {tensor(1)}), options);
}

// Two operands before each of the three; what lies beyond their ends stays out of the sums.
TEST_F(Attentions, ProgramsBeforeOperands) {
  const AttentionAttrs attrs = attention_attributes(0.25);
  const std::string_view program = "in=3; r3=add r0 r1; r4=mul r3 r2; out r4";
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    Problem all = problem(attrs, dtype, {2, 4, 2, 40, 70, 32, 24});
    put_before(all, 0, program, {operand(dtype, {4, 1, 32}), all.inputs[0]});
    put_before(all, 1, program, {operand(dtype, {2, 1, 32}), operand(DType::f32, {2, 1, 70, 1})});
    put_before(all, 2, program, {operand(dtype, {24}), operand(dtype, {2, 1, 70, 24})});
    check(all);
  }
}

TEST_F(Attentions, ProgramsBeforeOneOperand) {
  const AttentionAttrs attrs = attention_attributes(0.25, true);
  for (const size_t input : {0, 1, 2}) {
    Problem tiles = problem(attrs, DType::f16, {1, 4, 2, 70, 70, 16, 16}, {operand(DType::f16, {70, 70})});
    put_before(tiles, input, "in=1; r1=affine r0 0.5 1; out r1", {});
    check(tiles);
    Problem odd = problem(attrs, DType::f16, {1, 2, 2, 9, 35, 11, 13});
    put_before(odd, input, "in=1; r1=silu r0; out r1", {});
    check(odd);
  }
}

TEST_F(Attentions, LargeHeadsWithPrograms) {
  const AttentionAttrs attrs = attention_attributes(0.0625);
  Problem large = problem(attrs, DType::f16, {1, 1, 1, 20, 40, 256, 256});
  put_before(large, 0, "in=2; r2=add r0 r1; out r2", {operand(DType::f16, {256})});
  check(large);
}

TEST_F(Attentions, ProgramsInsideRows) {
  const AttentionAttrs attrs = attention_attributes(0.25);
  const std::vector<int64_t> symbols = {2, 21};
  CheckOptions options;
  options.symbols = symbols;
  const Expr batch = Expr::symbol(0), length = Expr::symbol(1);
  Operand x = symbolic_operand(DType::f16, {batch, 3, length, 16}, symbols);
  x.strides = {length * 48, 16, 48, 1};
  x.opt_strides = {21 * 48, 16, 48, 1};
  Problem views = op_problem(attrs, {x, x, x}, {x});
  put_before(views, 1, "in=3; r3=mul r0 r1; r4=add r3 r2; out r4",
             {operand(DType::f16, {3, 1, 16}), symbolic_operand(DType::f16, {length, 1}, symbols)});
  check(views, options);
}

TEST_F(Attentions, WhatIsRefused) {
  const AttentionAttrs attrs = attention_attributes(1);
  EXPECT_EQ(refusal_of(attention_tactic(), problem(attrs, DType::f64, {})), "its input is f64");
  EXPECT_EQ(refusal_of(attention_tactic(), problem(attrs, DType::f16, {1, 1, 1, 4, 4, 264, 16})),
            "heads of 264 elements, 256 are handled");
  EXPECT_EQ(refusal_of(attention_tactic(), problem(attrs, DType::f16, {}, {operand(DType::f64, {16})})),
            "its mask is f64");
  EXPECT_EQ(refusal_of(attention_tactic(), with_sinks(attrs, DType::f16, Sizes{}, {}, DType::f64)),
            "its sinks are f64");
}

}  // namespace
}  // namespace lathe::cuda
