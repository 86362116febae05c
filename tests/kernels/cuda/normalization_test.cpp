// SPDX-License-Identifier: Apache-2.0
// Normalisations and softmax on the emulator: every kind, every way that threads share rows, tails, types, programs.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/kernel_check.h"

namespace lathe::cuda {

const Tactic& normalization_tactic();
const Tactic& softmax_tactic();

namespace {

class Normalizations : public testing::Test {
 protected:
  void check(const Problem& problem, const CheckOptions& options = {}) {
    const Tactic& tactic = problem.is(OpKind::softmax) ? softmax_tactic() : normalization_tactic();
    const Result<> checked = check_tactic(test_backend(), tactic, problem, options);
    EXPECT_TRUE(checked) << to_text(problem) << "\n" << checked.error().message;
  }
  // x and y alike, with the operands given.
  void check_like(const Attributes& attributes, const Operand& x, std::vector<Operand> parameters = {},
                  const CheckOptions& options = {}) {
    parameters.insert(parameters.begin(), x);
    check(op_problem(attributes, std::move(parameters), {x}), options);
  }
};

TEST_F(Normalizations, SoftmaxRowsOfAnyLength) {
  const SoftmaxAttrs softmax;
  for (const int64_t length : {1, 31, 32, 1000}) check_like(softmax, operand(DType::f16, {5, length}));
  check_like(softmax, operand(DType::bf16, {2, 4097}));
  SoftmaxAttrs log;
  log.log = true;
  check_like(log, operand(DType::f32, {3, 4, 33}));
}

TEST_F(Normalizations, SoftmaxOfVeryLongRows) {
  const SoftmaxAttrs softmax;
  check_like(softmax, operand(DType::f32, {1, 40000}));
}

TEST_F(Normalizations, SoftmaxOverAnyAxis) {
  SoftmaxAttrs softmax;
  softmax.axis = 1;
  check_like(softmax, operand(DType::f16, {2, 21, 4, 8}));
  check_like(softmax, operand(DType::f16, {2, 21, 4, 8}, Layout::channels_last));
  softmax.axis = 0;
  softmax.log = true;
  check_like(softmax, operand(DType::f32, {300, 5}));
}

TEST_F(Normalizations, SoftmaxOfInfinities) {
  const float inf = INFINITY;
  CheckOptions options;
  options.inputs = {Tensor::of<float>({5, 3}, {1, NAN, 2, inf, 1, 2, -inf, 1, 2, inf, -inf, 3, -inf, -inf, -inf})};
  SoftmaxAttrs softmax;
  check_like(softmax, operand(DType::f32, {5, 3}), {}, options);
  softmax.log = true;
  check_like(softmax, operand(DType::f32, {5, 3}), {}, options);
  softmax.axis = 0;
  check_like(softmax, operand(DType::f32, {5, 3}), {}, options);
}

TEST_F(Normalizations, Layer) {
  LayerNormalizationAttrs layer;
  check_like(layer, operand(DType::f16, {2, 3, 768}), {operand(DType::f16, {768}), operand(DType::f16, {768})});
  check_like(layer, operand(DType::f32, {5, 33}), {operand(DType::f32, {33})});
  layer.axis = 1;
  check_like(layer, operand(DType::bf16, {3, 4, 40}), {operand(DType::f32, {4, 1}), operand(DType::f32, {4, 40})});
}

TEST_F(Normalizations, LayerWithProgram) {
  const LayerNormalizationAttrs layer;
  const Operand x = operand(DType::f16, {2, 3, 64});
  check(op_problem(layer, {x, operand(DType::f32, {64}), operand(DType::f32, {64})}, {x},
                   "in=2; r2=add r0 r1; r3=gelu_erf r2; out r3", {operand(DType::f16, {2, 3, 64})}));
}

TEST_F(Normalizations, LayerOfShiftedRows) {
  // The mean is large against the deviation: sums of squares would lose all digits.
  Tensor x = *Tensor::allocate(DType::f32, {3, 1000});
  for (int64_t i = 0; i < 3000; ++i) x.mutable_as<float>()[i] = 10000.0f + static_cast<float>(i * 7919 % 13);
  CheckOptions options;
  options.inputs = {x};
  options.tolerance = 1e-3;
  const LayerNormalizationAttrs layer;
  check_like(layer, operand(DType::f32, {3, 1000}), {operand(DType::f32, {1000})}, options);
}

TEST_F(Normalizations, RootMeanSquare) {
  const RmsNormalizationAttrs rms;
  check_like(rms, operand(DType::bf16, {4, 520}), {operand(DType::bf16, {520})});
}

TEST_F(Normalizations, InstanceAndGroup) {
  const InstanceNormalizationAttrs instance;
  GroupNormalizationAttrs group;
  group.groups = 4;
  for (const Layout layout : {Layout::linear, Layout::channels_last}) {
    const Operand x = operand(DType::f16, {2, 24, 5, 8}, layout);
    check_like(instance, x, {operand(DType::f32, {24}), operand(DType::f32, {24})});
    check_like(group, x, {operand(DType::f16, {24}), operand(DType::f16, {24})});
  }
  check_like(instance, operand(DType::f32, {1, 2, 50000}), {operand(DType::f32, {2}), operand(DType::f32, {2})});
}

TEST_F(Normalizations, FewColumnsInParts) {
  const InstanceNormalizationAttrs instance;
  check_like(instance, operand(DType::f32, {1, 8, 64, 40}, Layout::channels_last),
             {operand(DType::f32, {8}), operand(DType::f32, {8})});
}

TEST_F(Normalizations, PNorms) {
  LpNormalizationAttrs norm;
  for (const int64_t p : {1, 2, 3}) {
    norm.p = p;
    check_like(norm, operand(DType::f32, {5, 33}));
  }
  norm.axis = 1;
  check_like(norm, operand(DType::f16, {2, 9, 4, 4}));
  CheckOptions zeros;
  zeros.inputs = {Tensor::of<float>({2, 3}, {0, 0, 0, 3, 4, 0})};
  norm = {};
  check_like(norm, operand(DType::f32, {2, 3}), {}, zeros);
}

TEST_F(Normalizations, DimensionsKnownLater) {
  const std::vector<int64_t> symbols = {3, 50};
  CheckOptions options;
  options.symbols = symbols;
  const LayerNormalizationAttrs layer;
  const Operand x = symbolic_operand(DType::f16, {Expr::symbol(0), Expr::symbol(1), 64}, symbols);
  check_like(layer, x, {operand(DType::f16, {64}), operand(DType::f16, {64})}, options);
  const SoftmaxAttrs softmax;
  check_like(softmax, symbolic_operand(DType::f16, {Expr::symbol(0), 7, Expr::symbol(1)}, symbols), {}, options);
}

TEST_F(Normalizations, WhatIsRefused) {
  const SoftmaxAttrs softmax;
  const Operand x = operand(DType::f64, {2, 3});
  EXPECT_EQ(softmax_tactic().refuse(op_problem(softmax, {x}, {x})), "a tensor is f64");
  EXPECT_EQ(normalization_tactic().refuse(op_problem(softmax, {x}, {x})), "not a normalization");
  const LayerNormalizationAttrs layer;
  const Operand y = operand(DType::f32, {2, 3});
  EXPECT_EQ(normalization_tactic().refuse(op_problem(layer, {y, operand(DType::f32, {3})}, {y, y})), "several results");
}

}  // namespace
}  // namespace lathe::cuda
