// SPDX-License-Identifier: Apache-2.0
// Reductions on the emulator: every kind, every way that threads share rows, tails, types and programs.
#include <gtest/gtest.h>

#include <cmath>

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

TEST_F(Reductions, EveryKindAlongRows) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min, ReduceOp::mean, ReduceOp::l1,
                            ReduceOp::l2, ReduceOp::log_sum_exp, ReduceOp::sum_square}) {
    const ReduceAttrs attrs = reduce_attributes(op, {1});
    check(problem(attrs, operand(DType::f32, {5, 33})));
  }
}

TEST_F(Reductions, LogarithmOfPositiveSums) {
  const ReduceAttrs attrs = reduce_attributes(ReduceOp::log_sum, {1});
  CheckOptions options;
  options.inputs = {Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 0.5f})};
  check(problem(attrs, operand(DType::f32, {2, 3})), options);
}

TEST_F(Reductions, RowsOfAnyLength) {
  const ReduceAttrs attrs = reduce_attributes(ReduceOp::mean, {1});
  for (const int64_t length : {1, 31, 32, 1000, 4097}) check(problem(attrs, operand(DType::f16, {3, length})));
}

TEST_F(Reductions, FewLongRowsInParts) {
  const ReduceAttrs attrs = reduce_attributes(ReduceOp::log_sum_exp, {}, false);
  check(problem(attrs, operand(DType::bf16, {2, 3, 5000})));
}

TEST_F(Reductions, Columns) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const ReduceAttrs pooling = reduce_attributes(ReduceOp::mean, {2, 3});
    check(problem(pooling, operand(dtype, {2, 24, 7, 7}, Layout::channels_last)));
    check(problem(pooling, operand(dtype, {2, 24, 7, 7})));
  }
  const ReduceAttrs first = reduce_attributes(ReduceOp::max, {0}, false);
  check(problem(first, operand(DType::f32, {700, 9})));
  const ReduceAttrs outer = reduce_attributes(ReduceOp::sum, {0, 2});
  check(problem(outer, operand(DType::f32, {3, 5, 4, 6})));
}

TEST_F(Reductions, Integers) {
  for (const DType dtype : {DType::i32, DType::i64, DType::u8, DType::u64}) {
    const ReduceAttrs mean = reduce_attributes(ReduceOp::mean, {1});
    check(problem(mean, operand(dtype, {4, 37})));
    const ReduceAttrs largest = reduce_attributes(ReduceOp::max, {0});
    check(problem(largest, operand(dtype, {37, 4})));
  }
  const ReduceAttrs any = reduce_attributes(ReduceOp::max, {1});
  check(problem(any, operand(DType::boolean, {4, 5})));
  const ReduceAttrs norm = reduce_attributes(ReduceOp::l2, {1});
  check(problem(norm, operand(DType::i32, {4, 5})));
}

TEST_F(Reductions, Doubles) {
  const ReduceAttrs attrs = reduce_attributes(ReduceOp::log_sum_exp, {1});
  check(problem(attrs, operand(DType::f64, {4, 37})));
}

TEST_F(Reductions, Programs) {
  const ReduceAttrs rows = reduce_attributes(ReduceOp::sum, {2}, false);
  check(problem(rows, operand(DType::f16, {3, 4, 40}), "in=2; r2=add r0 r1; r3=relu r2; out r3",
                {strided_operand(DType::f32, {3, 4}, {0, 1})}));
  const ReduceAttrs columns = reduce_attributes(ReduceOp::mean, {2, 3});
  check(problem(columns, operand(DType::f16, {2, 16, 5, 5}, Layout::channels_last), "in=2; r2=mul r0 r1; out r2",
                {strided_operand(DType::f16, {2, 16, 1, 1}, {0, 1, 0, 0})}));
}

TEST_F(Reductions, NotANumberAndInfinity) {
  const float inf = INFINITY;
  CheckOptions options;
  options.inputs = {Tensor::of<float>({5, 3}, {1, NAN, 2, inf, 1, 2, -inf, 1, 2, inf, -inf, 3, -inf, -inf, -inf})};
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min, ReduceOp::log_sum_exp}) {
    const ReduceAttrs attrs = reduce_attributes(op, {1});
    check(problem(attrs, operand(DType::f32, {5, 3})), options);
  }
}

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
  EXPECT_EQ(reduce_tactic().refuse(problem(sum, operand(DType::i32, {2, 3}), "in=1; r1=relu r0; out r1")),
            "a program behind doubles or integers");
  ReduceAttrs nothing = reduce_attributes(ReduceOp::sum, {});
  nothing.noop_with_empty_axes = true;
  EXPECT_EQ(reduce_tactic().refuse(problem(nothing, operand(DType::f32, {2, 3}))), "its axes leave the input as it is");
  const SoftmaxAttrs softmax;
  EXPECT_EQ(reduce_tactic().refuse(op_problem(softmax, {operand(DType::f32, {2, 3})}, {operand(DType::f32, {2, 3})})),
            "not a reduction");
}

}  // namespace
}  // namespace lathe::cuda
