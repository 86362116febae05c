// SPDX-License-Identifier: Apache-2.0
// Pooling on the emulator: every kind, layout and padding.
#include <gtest/gtest.h>

#include <cmath>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/kernel_check.h"
#include "ops/rules.h"

namespace lathe::cuda {

const Tactic& pooling_tactic();
const Tactic& reduce_tactic();

namespace {

class Poolings : public testing::Test {
 protected:
  void check(const Tactic& tactic, const Problem& problem, const CheckOptions& options = {}) {
    const Result<> checked = check_tactic(test_backend(), tactic, problem, options);
    EXPECT_TRUE(checked) << to_text(problem) << "\n" << checked.error().message;
  }
  static PoolingAttrs attributes(PoolingOp op, Ints window, Ints stride, Ints pads) {
    PoolingAttrs attrs;
    attrs.op = op;
    attrs.window = std::move(window);
    attrs.stride = std::move(stride);
    attrs.pads_begin = attrs.pads_end = std::move(pads);
    return attrs;
  }
};

TEST_F(Poolings, BatchKnownLater) {
  const std::vector<int64_t> symbols = {3};
  CheckOptions options;
  options.symbols = symbols;
  const PoolingAttrs attrs = attributes(PoolingOp::max, {2, 2}, {2, 2}, {0, 0});
  check(pooling_tactic(),
        op_problem(attrs, {symbolic_operand(DType::f16, {Expr::symbol(0), 8, 4, 4}, symbols)},
                   {symbolic_operand(DType::f16, {Expr::symbol(0), 8, 2, 2}, symbols)}),
        options);
}

// Pairs of 16-bit floats, of which some are NaN or infinite, before a program.
TEST_F(Poolings, MaximaOfPairsKeepWhatIsNoNumber) {
  const PoolingAttrs attrs = attributes(PoolingOp::max, {3, 3}, {2, 2}, {1, 1});
  for (const DType type : {DType::f16, DType::bf16}) {
    const Dims dims = {2, 16, 6, 7};
    CheckOptions options;
    options.inputs = {*Tensor::allocate(type, dims)};
    std::vector<double> values(static_cast<size_t>(options.inputs[0].volume()));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = i % 23 == 0   ? NAN
                  : i % 7 == 0  ? -HUGE_VAL
                  : i % 41 == 0 ? HUGE_VAL
                                : static_cast<double>(i * 37 % 101) - 50;
    from_doubles(values, options.inputs[0]);
    check(pooling_tactic(),
          op_problem(attrs, {operand(type, dims, Layout::channels_last)},
                     {operand(type, {2, 16, 3, 4}, Layout::channels_last)}, "in=1; r1=affine r0 0.5 1; out r1"),
          options);
  }
}

TEST_F(Poolings, WhatIsRefused) {
  const PoolingAttrs attrs = attributes(PoolingOp::max, {2, 2}, {2, 2}, {0, 0});
  const Operand x = operand(DType::f64, {1, 1, 4, 4}), y = operand(DType::f64, {1, 1, 2, 2});
  EXPECT_EQ(refusal_of(pooling_tactic(), op_problem(attrs, {x}, {y})), "floats do not hold f64");
  EXPECT_EQ(refusal_of(pooling_tactic(), op_problem(attrs, {x}, {y, y})), "further results");
  EXPECT_EQ(refusal_of(reduce_tactic(), op_problem(attrs, {x}, {y})), "not a reduction");
}

}  // namespace
}  // namespace lathe::cuda
