// SPDX-License-Identifier: Apache-2.0
#include "tuning/work.h"

#include <gtest/gtest.h>

namespace lathe {
namespace {

Operand tensor(const Dims& dims, DType dtype = DType::f32) {
  Operand operand;
  operand.dtype = dtype;
  operand.opt_dims = dims;
  for (const int64_t dim : dims) operand.dims.emplace_back(dim);
  operand.opt_strides = row_major_strides(dims);
  for (const int64_t stride : operand.opt_strides) operand.strides.emplace_back(stride);
  return operand;
}

Problem problem_of(const Attributes* attributes, std::vector<Operand> inputs, const Dims& output) {
  Problem problem;
  problem.attributes = attributes;
  problem.inputs = std::move(inputs);
  problem.outputs = {tensor(output)};
  return problem;
}

TEST(Work, Products) {
  const MatmulAttrs plain;
  EXPECT_EQ(operations_of(problem_of(&plain, {tensor({2, 5, 7}), tensor({7, 3})}, {2, 5, 3})), 2.0 * 2 * 5 * 7 * 3);
  MatmulAttrs transposed;
  transposed.transpose_a = true;
  EXPECT_EQ(operations_of(problem_of(&transposed, {tensor({7, 5}), tensor({7, 3})}, {5, 3})), 2.0 * 5 * 7 * 3);
  const ConvolutionAttrs convolution;
  EXPECT_EQ(operations_of(problem_of(&convolution, {tensor({1, 8, 9, 9}), tensor({16, 4, 3, 3})}, {1, 16, 7, 7})),
            2.0 * 16 * 7 * 7 * 4 * 9);
  EinsumAttrs einsum;
  einsum.equation = "ij,kj->ik";
  EXPECT_EQ(operations_of(problem_of(&einsum, {tensor({4, 6}), tensor({5, 6})}, {4, 5})), 2.0 * 4 * 5 * 6);
  AttentionAttrs attention;
  const std::vector<Operand> heads = {tensor({2, 4, 10, 16}), tensor({2, 4, 12, 16}), tensor({2, 4, 12, 8})};
  EXPECT_EQ(operations_of(problem_of(&attention, heads, {2, 4, 10, 8})), 2.0 * 2 * 4 * 10 * 12 * (16 + 8));
  attention.causal = true;
  constexpr int64_t kSeen = 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10 + 11 + 12;  // by all queries
  EXPECT_EQ(operations_of(problem_of(&attention, heads, {2, 4, 10, 8})), 2.0 * 2 * 4 * kSeen * (16 + 8));
  attention.window = 4;
  EXPECT_EQ(operations_of(problem_of(&attention, heads, {2, 4, 10, 8})), 2.0 * 2 * 4 * (3 + 9 * 4) * (16 + 8));
}

TEST(Work, ProductsWhoseRowsAreCollapsed) {
  const MatmulAttrs plain;
  Problem problem = problem_of(&plain, {tensor({2, 5, 3, 4}), tensor({12, 6})}, {10, 6});
  problem.inputs[0].reassociation = {2, 2};
  EXPECT_EQ(operations_of(problem), 2.0 * 10 * 12 * 6);
}

TEST(Work, ProgramsAddTheirInstructions) {
  const MatmulAttrs plain;
  Problem problem = problem_of(&plain, {tensor({5, 7}), tensor({7, 3})}, {5, 3});
  problem.program = *parse_program("in=2; r2=add r0 r1; r3=relu r2; out r3");
  problem.operands = {tensor({3})};
  EXPECT_EQ(operations_of(problem), 2.0 * 5 * 7 * 3 + 2 * 5 * 3);
  problem.attributes = nullptr;
  problem.inputs.clear();
  EXPECT_EQ(operations_of(problem), 2.0 * 5 * 3);
}

TEST(Work, OtherOps) {
  const SoftmaxAttrs softmax;
  EXPECT_EQ(operations_of(problem_of(&softmax, {tensor({4, 6})}, {4, 6})), 4 * 6);
  const GatherAttrs gather;
  EXPECT_EQ(operations_of(problem_of(&gather, {tensor({100, 6}), tensor({4})}, {4, 6})), 0);
  Problem copy;
  copy.operands = {tensor({4, 6})};
  copy.outputs = {tensor({4, 6})};
  copy.program = *parse_program("in=1; out r0");
  EXPECT_EQ(operations_of(copy), 0);
}

TEST(Work, BytesAreCountedOnce) {
  const MatmulAttrs plain;
  Problem problem = problem_of(&plain, {tensor({5, 7}, DType::f16), tensor({7, 3}, DType::f16)}, {5, 3});
  EXPECT_EQ(moved_bytes(problem), 2 * (5 * 7 + 7 * 3) + 4 * 5 * 3);
  problem.operands = {tensor({5, 3})};
  problem.operands[0].opt_strides = {0, 1};  // one row, repeated
  EXPECT_EQ(moved_bytes(problem), 2 * (5 * 7 + 7 * 3) + 4 * 5 * 3 + 4 * 3);
}

}  // namespace
}  // namespace lathe
