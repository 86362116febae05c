// SPDX-License-Identifier: Apache-2.0
// Reductions on the emulator: every kind, every way that threads share rows, tails, types and programs.
#include <gtest/gtest.h>

#include <cmath>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/kernel_check.h"
#include "kernels/cuda/reduce_attributes.h"

namespace lathe::cuda {

const Tactic& reduce_tactic();

namespace {

class Reductions : public testing::Test {
 protected:
  static Problem problem(const ReduceAttrs& attrs, Operand x, std::string_view program = "",
                         std::vector<Operand> operands = {}) {
    Dims dims;
    for (size_t i = 0; i < x.dims.size(); ++i) {
      bool reduced = attrs.axes.empty();
      for (const int64_t axis : attrs.axes) reduced |= static_cast<size_t>(axis) == i;
      if (!reduced)
        dims.push_back(x.opt_dims[i]);
      else if (attrs.keepdims)
        dims.push_back(1);
    }
    const bool channels_last = x.dims.size() == 4 && x.strides[1] == Expr(1) && attrs.keepdims;
    Operand y = operand(x.dtype, dims, channels_last ? Layout::channels_last : Layout::linear);
    return op_problem(attrs, {std::move(x)}, {std::move(y)}, program, std::move(operands));
  }
  void check(const Problem& problem, const CheckOptions& options = {}) {
    const Result<> checked = check_tactic(test_backend(), reduce_tactic(), problem, options);
    EXPECT_TRUE(checked) << to_text(problem) << "\n" << checked.error().message;
  }
};

TEST_F(Reductions, DimensionsKnownLater) {
  const Shape dims = {Expr::symbol(0), 6, Expr::symbol(1)};
  const std::vector<int64_t> symbols = {3, 50};
  CheckOptions options;
  options.symbols = symbols;
  const ReduceAttrs rows = reduce_attributes(ReduceOp::sum, {2});
  check(op_problem(rows, {symbolic_operand(DType::f32, dims, symbols)},
                   {symbolic_operand(DType::f32, {dims[0], 6, 1}, symbols)}),
        options);
  const ReduceAttrs columns = reduce_attributes(ReduceOp::sum, {0, 1}, false);
  check(op_problem(columns, {symbolic_operand(DType::f32, dims, symbols)},
                   {symbolic_operand(DType::f32, {dims[2]}, symbols)}),
        options);
}

TEST_F(Reductions, WhatIsRefused) {
  const ReduceAttrs sum = reduce_attributes(ReduceOp::sum, {1});
  EXPECT_EQ(refusal_of(reduce_tactic(), problem(sum, operand(DType::i32, {2, 3}), "in=1; r1=relu r0; out r1")),
            "a program behind doubles or integers");
  ReduceAttrs nothing = reduce_attributes(ReduceOp::sum, {});
  nothing.noop_with_empty_axes = true;
  EXPECT_EQ(refusal_of(reduce_tactic(), problem(nothing, operand(DType::f32, {2, 3}))),
            "its axes leave the input as it is");
  const SoftmaxAttrs softmax;
  EXPECT_EQ(
      refusal_of(reduce_tactic(), op_problem(softmax, {operand(DType::f32, {2, 3})}, {operand(DType::f32, {2, 3})})),
      "not a reduction");
}

}  // namespace
}  // namespace lathe::cuda
