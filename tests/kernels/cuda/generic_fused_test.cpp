// SPDX-License-Identifier: Apache-2.0
// Generic kernels beyond the op cases: fused programs, layouts, dynamic shapes, 16-bit floats, f64 expressions.
#include <gtest/gtest.h>

#include "fixtures/ask_tactic.h"
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

TEST_F(Generic, RefusesWhatOnlyRunningTells) {
  const auto refusal = [](const Attributes& attributes, std::vector<Operand> inputs, std::vector<Operand> outputs) {
    return refusal_of(generic_tactic(), op_problem(attributes, std::move(inputs), std::move(outputs))).value_or("");
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
