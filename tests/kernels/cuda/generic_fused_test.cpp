// SPDX-License-Identifier: Apache-2.0
// Generic kernels beyond the op cases: fused programs, layouts, dynamic shapes, 16-bit floats, f64 expressions.
#include <gtest/gtest.h>

#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/kernel_check.h"

namespace lathe::cuda {

const Tactic& generic_tactic();

namespace {

class Generic : public testing::Test {
 protected:
  void expect(const Problem& problem, const CheckOptions& options = {}) {
    const Result<> result = check_tactic(test_backend(), generic_tactic(), problem, options);
    EXPECT_TRUE(result) << result.error().message;
  }
};

TEST_F(Generic, ConvolutionWithBiasResidualAndActivation) {
  ConvolutionAttrs attrs;
  attrs.stride = {2, 1};
  attrs.pads_begin = {1, 0};
  attrs.pads_end = {1, 2};
  attrs.groups = 2;
  const Dims out = {2, 6, 5, 8};
  for (const Layout layout : {Layout::linear, Layout::channels_last})
    expect(op_problem(attrs, {operand(DType::f16, {2, 4, 9, 8}, layout), operand(DType::f16, {6, 2, 3, 3})},
                      {operand(DType::f16, out, layout)}, "in=3; r3=add r0 r1; r4=add r3 r2; r5=relu r4; out r5",
                      {strided_operand(DType::f32, out, {0, 1, 0, 0}), operand(DType::f16, out, layout)}));
}

TEST_F(Generic, MatmulWithActivation) {
  MatmulAttrs attrs;
  attrs.transpose_b = true;
  expect(op_problem(attrs, {operand(DType::bf16, {3, 1, 5, 17}), operand(DType::bf16, {2, 7, 17})},
                    {operand(DType::bf16, {3, 2, 5, 7})}, "in=2; r2=add r0 r1; r3=gelu_erf r2; out r3",
                    {strided_operand(DType::f32, {3, 2, 5, 7}, {0, 0, 0, 1})}));
}

TEST_F(Generic, ReductionWithScale) {
  ReduceAttrs attrs;
  attrs.axes = {1, 3};
  attrs.op = ReduceOp::mean;
  expect(op_problem(attrs, {operand(DType::f16, {3, 40, 5, 7}, Layout::channels_last)},
                    {operand(DType::f32, {3, 1, 5, 1})}, "in=1; r1=affine r0 2 1; out r1"));
  attrs.keepdims = false;
  expect(op_problem(attrs, {operand(DType::f32, {3, 300, 5, 7})}, {operand(DType::f32, {3, 5})},
                    "in=2; r2=mul r0 r1; out r2", {operand(DType::f32, {3, 5})}));
}

TEST_F(Generic, NormalizationWithResidual) {
  const LayerNormalizationAttrs attrs;
  expect(op_problem(attrs, {operand(DType::f16, {6, 33}), operand(DType::f16, {33}), operand(DType::f16, {33})},
                    {operand(DType::f16, {6, 33})}, "in=2; r2=add r0 r1; out r2", {operand(DType::f16, {6, 33})}));
}

TEST_F(Generic, DynamicShapes) {
  CheckOptions options;
  options.symbols = {3, 10, 6};
  const Expr n = Expr::symbol(0), t = Expr::symbol(1), h = Expr::symbol(2);
  const auto make = [&](const Shape& dims, DType dtype = DType::f32) {
    return symbolic_operand(dtype, dims, options.symbols);
  };
  const MatmulAttrs matmul;
  expect(op_problem(matmul, {make({n, t, 8}), make({8, 5})}, {make({n, t, 5})}), options);
  ConvolutionAttrs convolution;
  convolution.padding_mode = PaddingMode::same_upper;
  convolution.stride = {2, 2};
  expect(
      op_problem(convolution, {make({n, 2, h, h}), make({4, 2, 3, 3})}, {make({n, 4, ceildiv(h, 2), ceildiv(h, 2)})}),
      options);
  const SoftmaxAttrs softmax;
  expect(op_problem(softmax, {make({n, t})}, {make({n, t})}), options);
  ConcatAttrs concat;
  concat.axis = 1;
  expect(op_problem(concat, {make({n, t}), make({n, h})}, {make({n, t + h})}), options);
  const ShapeAttrs shape;
  expect(op_problem(shape, {make({n, t, 4})}, {operand(DType::i64, {3})}), options);
}

TEST_F(Generic, StridedInputsAndOutputs) {
  TransposeAttrs attrs;
  attrs.perm = {2, 0, 1};
  expect(op_problem(attrs, {strided_operand(DType::f16, {4, 5, 6}, {70, 14, 2})},
                    {strided_operand(DType::f16, {6, 4, 5}, {40, 9, 1})}));
}

TEST_F(Generic, ExpressionsInDouble) {
  const std::vector<Operand> operands = {operand(DType::f64, {3, 5}), operand(DType::f64, {5})};
  CheckOptions options;
  options.tolerance = 1e-6;  // the expectation is computed in f32
  expect(pointwise_problem("in=2; r2=mul r0 r1; r3=gelu_tanh r2; r4=clip r3 -1 1; out r4 r2", operands,
                           {operand(DType::f64, {3, 5}), operand(DType::f32, {3, 5})}),
         options);
}

TEST_F(Generic, RefusesWhatOnlyRunningTells) {
  const auto refusal = [](const Attributes& attributes, std::vector<Operand> inputs, std::vector<Operand> outputs) {
    return generic_tactic().refuse(op_problem(attributes, std::move(inputs), std::move(outputs))).value_or("");
  };
  EXPECT_EQ(refusal(NonzeroAttrs(), {operand(DType::f32, {4})}, {operand(DType::i64, {1, 2})}),
            "the size of its result depends on its data");
  EXPECT_EQ(refusal(ReduceAttrs(), {operand(DType::f32, {4}), operand(DType::i64, {1})}, {operand(DType::f32, {1})}),
            "its axes are only known while running");
  std::vector<Operand> many(100, operand(DType::f32, {1}));
  EXPECT_EQ(refusal(ConcatAttrs(), many, {operand(DType::f32, {100})}),
            "it needs 101 kernel arguments, 96 are possible");
}

}  // namespace
}  // namespace lathe::cuda
