// SPDX-License-Identifier: Apache-2.0
// Programs before what reductions, softmax and normalisations read.
#include <gtest/gtest.h>

#include <cmath>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/kernel_check.h"
#include "kernels/cuda/reduce_attributes.h"

namespace lathe::cuda {

const Tactic& arg_reduce_tactic();
const Tactic& normalization_tactic();
const Tactic& reduce_tactic();
const Tactic& softmax_tactic();

namespace {

// Two tensors and an operand that is broadcast.
constexpr std::string_view kProgram = "in=3; r3=silu r0; r4=mul r3 r1; r5=add r4 r2; out r5";

class RowPrologues : public testing::Test {
 protected:
  void check(const Problem& problem, const CheckOptions& options = {}) {
    const Tactic& tactic = problem.is(OpKind::softmax)                                 ? softmax_tactic()
                           : problem.is(OpKind::reduce) || problem.is(OpKind::pooling) ? reduce_tactic()
                                                                                       : normalization_tactic();
    const Result<> checked = check_tactic(test_backend(), tactic, problem, options);
    EXPECT_TRUE(checked) << to_text(problem) << "\n" << checked.error().message;
  }
  static Problem before(Problem problem, std::string_view program, std::vector<Operand> operands) {
    put_before(problem, 0, program, std::move(operands));
    return problem;
  }
  // `program` before a reduction of x to y.
  static Problem reduction(const ReduceAttrs& attrs, const Operand& x, const Operand& y, std::vector<Operand> operands,
                           std::string_view program = kProgram) {
    return before(op_problem(attrs, {x}, {y}), program, std::move(operands));
  }
};

TEST_F(RowPrologues, ReducedRowsOfAnyLength) {
  const ReduceAttrs mean = reduce_attributes(ReduceOp::mean, {1});
  for (const DType dtype : {DType::f16, DType::f32})
    for (const int64_t length : {1, 33, 1000}) {
      const Operand x = operand(dtype, {5, length});
      check(reduction(mean, x, operand(dtype, {5, 1}), {x, operand(dtype, {length})}));
    }
}

TEST_F(RowPrologues, PositionsOfExtremes) {
  ArgReduceAttrs attrs;
  attrs.axis = 1;
  attrs.keepdims = false;
  for (const DType dtype : {DType::f16, DType::f32, DType::i8}) {
    const Operand x = operand(dtype, {6, 300});
    const Problem problem = before(op_problem(attrs, {x}, {operand(DType::i64, {6})}), "in=2; r2=add r0 r1; out r2",
                                   {operand(DType::f32, {300})});
    const Result<> checked = check_tactic(test_backend(), arg_reduce_tactic(), problem);
    EXPECT_TRUE(checked) << checked.error().message;
  }
}

TEST_F(RowPrologues, SumsOfSquaresAndProducts) {
  const ReduceAttrs sum = reduce_attributes(ReduceOp::sum, {2}, false);
  const Operand x = operand(DType::bf16, {3, 4, 40}), y = operand(DType::f32, {3, 4});
  check(reduction(sum, x, y, {}, "in=1; r1=mul r0 r0; out r1"));
  check(reduction(sum, x, y, {operand(DType::f32, {3, 1, 40})}, "in=2; r2=mul r0 r1; out r2"));
}

TEST_F(RowPrologues, FewLongRowsInParts) {
  const ReduceAttrs largest = reduce_attributes(ReduceOp::max, {});
  const Operand x = operand(DType::f16, {2, 3, 5000});
  check(reduction(largest, x, operand(DType::f16, {1, 1, 1}), {x, operand(DType::f16, {2, 3, 1})}));
}

TEST_F(RowPrologues, ReducedColumns) {
  const ReduceAttrs pooling = reduce_attributes(ReduceOp::mean, {2, 3});
  for (const DType dtype : {DType::f32, DType::f16}) {
    const Operand x = operand(dtype, {2, 24, 7, 7}, Layout::channels_last);
    const Operand y = operand(dtype, {2, 24, 1, 1}, Layout::channels_last), gate = operand(dtype, {2, 24, 1, 1});
    check(reduction(pooling, x, y, {x, gate}));
    check(reduction(pooling, x, y, {operand(dtype, {2, 24, 7, 7}), gate}));  // of another layout
    check(reduction(pooling, operand(dtype, {2, 24, 7, 7}), y, {x, gate}));
  }
  const ReduceAttrs strips = reduce_attributes(ReduceOp::sum, {0}, false);
  const Operand tall = operand(DType::f32, {700, 9});
  check(reduction(strips, tall, operand(DType::f32, {9}), {tall, operand(DType::f32, {700, 1})}));
}

TEST_F(RowPrologues, BetweenTwoPrograms) {
  const ReduceAttrs rows = reduce_attributes(ReduceOp::sum, {2}, false);
  const Operand x = operand(DType::f16, {3, 4, 40});
  Problem problem = op_problem(rows, {x}, {operand(DType::f16, {3, 4})}, "in=2; r2=add r0 r1; r3=relu r2; out r3",
                               {operand(DType::f32, {4})});
  check(before(std::move(problem), kProgram, {x, operand(DType::f16, {4, 1})}));
}

TEST_F(RowPrologues, OfOtherTypes) {
  const ReduceAttrs mean = reduce_attributes(ReduceOp::mean, {2, 3});
  const std::string_view dequantize = "in=2; r2=affine r0 1 -3; r3=mul r2 r1; out r3";
  for (const DType dtype : {DType::i8, DType::u8})
    check(reduction(mean, operand(dtype, {2, 16, 5, 5}, Layout::channels_last), operand(DType::f16, {2, 16, 1, 1}),
                    {operand(DType::f32, {16, 1, 1})}, dequantize));
  check(reduction(mean, operand(DType::f16, {2, 3, 5, 5}), operand(DType::f32, {2, 3, 1, 1}), {}, "in=1; out r0"));
}

TEST_F(RowPrologues, GlobalPooling) {
  PoolingAttrs pooling;
  pooling.op = PoolingOp::average;
  pooling.window = {5, 7};
  pooling.stride = {1, 1};
  pooling.pads_begin = pooling.pads_end = {0, 0};
  pooling.dilation = {1, 1};
  const Operand x = operand(DType::f16, {2, 16, 5, 7}, Layout::channels_last);
  check(before(op_problem(pooling, {x}, {operand(DType::f16, {2, 16, 1, 1})}), kProgram,
               {x, operand(DType::f16, {16, 1, 1})}));
}

TEST_F(RowPrologues, ReducedDimensionsKnownLater) {
  const std::vector<int64_t> symbols = {3, 50};
  const Shape dims = {Expr::symbol(0), 6, Expr::symbol(1)};
  CheckOptions options;
  options.symbols = symbols;
  const Operand x = symbolic_operand(DType::f32, dims, symbols);
  const Operand gate = symbolic_operand(DType::f32, {dims[0], 1, dims[2]}, symbols);
  const ReduceAttrs rows = reduce_attributes(ReduceOp::sum, {2}),
                    columns = reduce_attributes(ReduceOp::sum, {0, 1}, false);
  check(reduction(rows, x, symbolic_operand(DType::f32, {dims[0], 6, 1}, symbols), {x, gate}), options);
  check(reduction(columns, x, symbolic_operand(DType::f32, {dims[2]}, symbols), {x, gate}), options);
}

TEST_F(RowPrologues, Softmax) {
  SoftmaxAttrs softmax;
  const std::string_view masked = "in=3; r3=affine r0 0.125 0; r4=add r3 r1; r5=mul r4 r2; out r5";
  for (const DType dtype : {DType::f32, DType::f16})
    for (const int64_t length : {31, 64, 1000}) {
      const Operand x = operand(dtype, {2, 3, length});
      check(before(op_problem(softmax, {x}, {x}), masked, {operand(dtype, {2, 1, length}), x}));
    }
  const Operand wide = operand(DType::f32, {1, 40000});  // in parts
  check(before(op_problem(softmax, {wide}, {wide}), kProgram, {wide, operand(DType::f32, {1})}));
  softmax.axis = 1;
  const Operand x = operand(DType::f16, {2, 21, 4, 8}, Layout::channels_last);
  check(before(op_problem(softmax, {x}, {x}), masked, {operand(DType::f16, {4, 8}), x}));
  softmax.axis = 0;
  const Operand columns = operand(DType::f32, {300, 5});
  check(before(op_problem(softmax, {columns}, {columns}), masked, {operand(DType::f32, {300, 1}), columns}));
}

TEST_F(RowPrologues, HiddenElementsOfSoftmax) {
  const SoftmaxAttrs softmax;
  CheckOptions options;
  Tensor mask = *Tensor::allocate(DType::f32, {4, 50});
  for (int64_t i = 0; i < mask.volume(); ++i) mask.mutable_as<float>()[i] = i % 50 > i / 50 * 16 ? -INFINITY : 0.0f;
  options.prologue_operands = {mask};
  const Operand x = operand(DType::f16, {3, 4, 50});
  check(before(op_problem(softmax, {x}, {x}), "in=2; r2=add r0 r1; out r2", {operand(DType::f32, {4, 50})}), options);
}

TEST_F(RowPrologues, LayerNormalization) {
  LayerNormalizationAttrs layer;
  for (const DType dtype : {DType::f32, DType::f16}) {
    const Operand x = operand(dtype, {2, 3, 264}), scale = operand(dtype, {264});
    check(before(op_problem(layer, {x, scale, scale}, {x}), "in=3; r3=add r0 r1; r4=add r3 r2; out r4", {x, scale}));
  }
  const Operand odd = operand(DType::f16, {5, 33});
  check(before(op_problem(layer, {odd, operand(DType::f32, {33})}, {odd}, "in=2; r2=add r0 r1; out r2", {odd}),
               kProgram, {odd, operand(DType::f16, {5, 1})}));
}

TEST_F(RowPrologues, OtherNormalizations) {
  const RmsNormalizationAttrs rms;
  const Operand rows = operand(DType::bf16, {4, 520});
  check(before(op_problem(rms, {rows, operand(DType::bf16, {520})}, {rows}), kProgram,
               {rows, operand(DType::bf16, {520})}));
  const LpNormalizationAttrs norm;
  check(before(op_problem(norm, {rows}, {rows}), "in=1; r1=gelu_erf r0; out r1", {}));
  const InstanceNormalizationAttrs instance;
  GroupNormalizationAttrs group;
  group.groups = 4;
  const Operand affine = operand(DType::f32, {24});
  for (const Layout layout : {Layout::linear, Layout::channels_last}) {
    const Operand x = operand(DType::f16, {2, 24, 5, 8}, layout);
    check(before(op_problem(instance, {x, affine, affine}, {x}), kProgram, {x, operand(DType::f16, {2, 24, 1, 1})}));
    check(before(op_problem(group, {x, affine, affine}, {x}), kProgram, {x, operand(DType::f16, {24, 1, 1})}));
  }
}

TEST_F(RowPrologues, NormalizedDimensionsKnownLater) {
  const std::vector<int64_t> symbols = {3, 50};
  CheckOptions options;
  options.symbols = symbols;
  const SoftmaxAttrs softmax;
  const Operand x = symbolic_operand(DType::f16, {Expr::symbol(0), 7, Expr::symbol(1)}, symbols);
  const Operand mask = symbolic_operand(DType::f16, {Expr::symbol(0), 1, Expr::symbol(1)}, symbols);
  check(before(op_problem(softmax, {x}, {x}), kProgram, {x, mask}), options);
}

TEST_F(RowPrologues, WhatIsRefused) {
  const std::string_view program = "in=1; r1=relu r0; out r1";
  const ReduceAttrs sum = reduce_attributes(ReduceOp::sum, {1});
  for (const DType dtype : {DType::f64, DType::i32})
    EXPECT_EQ(
        refusal_of(reduce_tactic(), reduction(sum, operand(dtype, {2, 3}), operand(DType::f32, {2, 1}), {}, program)),
        fmt::format("a program on elements of type {}", name_of(dtype)));
  const SoftmaxAttrs softmax;
  const Problem doubles =
      before(op_problem(softmax, {operand(DType::f64, {2, 3})}, {operand(DType::f32, {2, 3})}), program, {});
  EXPECT_EQ(refusal_of(softmax_tactic(), doubles), "a program on elements of type f64");
  const LayerNormalizationAttrs layer;
  const std::pair<const Tactic*, const Attributes*> ops[] = {
      {&reduce_tactic(), &sum}, {&softmax_tactic(), &softmax}, {&normalization_tactic(), &layer}};
  for (const auto& [tactic, attributes] : ops) {
    Problem second = doubles;
    second.attributes = attributes;
    second.inputs = {operand(DType::f32, {2, 3}), doubles.inputs[0]};
    EXPECT_EQ(refusal_of(*tactic, second), "a program before it");
  }
}

}  // namespace
}  // namespace lathe::cuda
