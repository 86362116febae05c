// SPDX-License-Identifier: Apache-2.0
// Normalisations and softmax on the emulator: every kind, every way that threads share rows, tails, types, programs.
#include <gtest/gtest.h>

#include <cmath>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/kernel_check.h"

namespace lathe::cuda {

const Tactic& group_normalization_tactic();
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
  EXPECT_EQ(refusal_of(softmax_tactic(), op_problem(softmax, {x}, {x})), "a tensor is f64");
  EXPECT_EQ(refusal_of(normalization_tactic(), op_problem(softmax, {x}, {x})), "not a normalization");
  const LayerNormalizationAttrs layer;
  const Operand y = operand(DType::f32, {2, 3});
  EXPECT_EQ(refusal_of(normalization_tactic(), op_problem(layer, {y, operand(DType::f32, {3})}, {y, y})),
            "further results");
}

TEST_F(Normalizations, GroupsThatAreRefused) {
  GroupNormalizationAttrs groups;
  groups.groups = 2;
  const auto refused = [&](const Operand& x, DType parameters) {
    const Operand each = operand(parameters, {x.opt_dims[1]});
    return refusal_of(group_normalization_tactic(), op_problem(groups, {x, each, each}, {x}));
  };
  const std::string apart = "channels that do not lie side by side in whole vectors";
  EXPECT_EQ(refused(operand(DType::f16, {1, 8, 4}), DType::f16), apart);
  EXPECT_EQ(refused(operand(DType::f64, {1, 8, 4}), DType::f64), "a tensor is f64");
  const InstanceNormalizationAttrs instance;
  const Operand x = operand(DType::f16, {1, 8, 4}), each = operand(DType::f16, {8});
  EXPECT_EQ(refusal_of(group_normalization_tactic(), op_problem(instance, {x, each, each}, {x})),
            "not a group normalization");
}

}  // namespace
}  // namespace lathe::cuda
