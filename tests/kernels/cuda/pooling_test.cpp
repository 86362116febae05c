// SPDX-License-Identifier: Apache-2.0
// Pooling on the emulator: every kind, layout and padding.
#include <gtest/gtest.h>

#include <cmath>

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

TEST_F(Poolings, MaximumInBothLayouts) {
  const PoolingAttrs attrs = attributes(PoolingOp::max, {3, 3}, {2, 2}, {1, 1});
  for (const Layout layout : {Layout::linear, Layout::channels_last})
    for (const DType dtype : {DType::f16, DType::f32, DType::i8})
      check(pooling_tactic(),
            op_problem(attrs, {operand(dtype, {2, 16, 9, 11}, layout)}, {operand(dtype, {2, 16, 5, 6}, layout)}));
}

TEST_F(Poolings, AverageWithAndWithoutPadding) {
  PoolingAttrs attrs = attributes(PoolingOp::average, {3, 2}, {2, 1}, {1, 1});
  for (const bool padded : {false, true}) {
    attrs.count_include_pad = padded;
    check(pooling_tactic(), op_problem(attrs, {operand(DType::f32, {1, 5, 7, 6}, Layout::channels_last)},
                                       {operand(DType::f32, {1, 5, 4, 7}, Layout::channels_last)}));
  }
  attrs.padding_mode = PaddingMode::explicit_round_up;
  attrs.count_include_pad = true;
  check(pooling_tactic(), op_problem(attrs, {operand(DType::f32, {1, 2, 8, 6})}, {operand(DType::f32, {1, 2, 5, 7})}));
}

TEST_F(Poolings, SamePaddingAndDilation) {
  PoolingAttrs attrs = attributes(PoolingOp::max, {3, 3}, {2, 2}, {0, 0});
  attrs.padding_mode = PaddingMode::same_lower;
  check(pooling_tactic(), op_problem(attrs, {operand(DType::f32, {1, 2, 7, 8})}, {operand(DType::f32, {1, 2, 4, 4})}));
  attrs = attributes(PoolingOp::max, {2, 3}, {1, 1}, {0, 0});
  attrs.dilation = {2, 1};
  check(pooling_tactic(), op_problem(attrs, {operand(DType::f32, {1, 2, 7, 8})}, {operand(DType::f32, {1, 2, 5, 6})}));
}

TEST_F(Poolings, NormsAndOtherRanks) {
  PoolingAttrs attrs = attributes(PoolingOp::lp, {3}, {2}, {1});
  for (const int64_t p : {1, 2, 3}) {
    attrs.p = p;
    check(pooling_tactic(), op_problem(attrs, {operand(DType::f32, {2, 3, 9})}, {operand(DType::f32, {2, 3, 5})}));
  }
  const PoolingAttrs volume = attributes(PoolingOp::average, {2, 2, 2}, {2, 2, 2}, {0, 0, 0});
  check(pooling_tactic(), op_problem(volume, {operand(DType::bf16, {1, 8, 4, 4, 6}, Layout::channels_last)},
                                     {operand(DType::bf16, {1, 8, 2, 2, 3}, Layout::channels_last)}));
}

TEST_F(Poolings, ProgramsAndNotANumber) {
  const PoolingAttrs attrs = attributes(PoolingOp::max, {2, 2}, {1, 1}, {0, 0});
  const Operand y = operand(DType::f16, {1, 8, 3, 3}, Layout::channels_last);
  check(pooling_tactic(), op_problem(attrs, {operand(DType::f16, {1, 8, 4, 4}, Layout::channels_last)}, {y},
                                     "in=3; r3=mul r0 r1; r4=add r3 r2; out r4",
                                     {strided_operand(DType::f32, {1, 8, 1, 1}, {0, 1, 0, 0}), y}));
  CheckOptions options;
  options.inputs = {Tensor::of<float>({1, 1, 2, 4}, {1, NAN, -INFINITY, -INFINITY, 0, 1, -INFINITY, -INFINITY})};
  check(pooling_tactic(), op_problem(attrs, {operand(DType::f32, {1, 1, 2, 4})}, {operand(DType::f32, {1, 1, 1, 3})}),
        options);
}

TEST_F(Poolings, OverEverythingIsAReduction) {
  for (const PoolingOp op : {PoolingOp::average, PoolingOp::max}) {
    const PoolingAttrs attrs = attributes(op, {5, 4}, {1, 1}, {0, 0});
    check(reduce_tactic(), op_problem(attrs, {operand(DType::f16, {2, 16, 5, 4}, Layout::channels_last)},
                                      {operand(DType::f16, {2, 16, 1, 1}, Layout::channels_last)}));
  }
}

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
  EXPECT_EQ(pooling_tactic().refuse(op_problem(attrs, {x}, {y})), "floats do not hold f64");
  EXPECT_EQ(pooling_tactic().refuse(op_problem(attrs, {x}, {y, y})), "several results");
  EXPECT_EQ(reduce_tactic().refuse(op_problem(attrs, {x}, {y})), "not a reduction");
}

}  // namespace
}  // namespace lathe::cuda
