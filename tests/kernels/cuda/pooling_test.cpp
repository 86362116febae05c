// SPDX-License-Identifier: Apache-2.0
// Pooling on the emulator: every kind, layout and padding.
#include <gtest/gtest.h>

#include <cmath>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/kernel_check.h"

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

TEST_F(Poolings, WhatIsRefused) {
  const PoolingAttrs attrs = attributes(PoolingOp::max, {2, 2}, {2, 2}, {0, 0});
  const Operand x = operand(DType::f64, {1, 1, 4, 4}), y = operand(DType::f64, {1, 1, 2, 2});
  EXPECT_EQ(refusal_of(pooling_tactic(), op_problem(attrs, {x}, {y})), "floats do not hold f64");
  EXPECT_EQ(refusal_of(pooling_tactic(), op_problem(attrs, {x}, {y, y})), "further results");
  EXPECT_EQ(refusal_of(reduce_tactic(), op_problem(attrs, {x}, {y})), "not a reduction");
}

}  // namespace
}  // namespace lathe::cuda
