// SPDX-License-Identifier: Apache-2.0
// Products whose result's dimensions do not lie at one stride each: heads that are split off.
#include <gtest/gtest.h>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/gemm/tile_tactic.h"

namespace lathe::cuda {

const Tactic& gemm_tactic();
const Tactic& gemv_tactic();

namespace {

const MatmulAttrs kAttributes;

class GemmParts : public testing::Test {
 protected:
  void check(const Tactic& tactic, const Problem& problem, const std::vector<int64_t>& symbols = {}, bool all = false) {
    CheckOptions options;
    options.symbols = symbols;
    if (problem.outputs[0].dtype == DType::f16) options.tolerance = 4e-3;
    const Backend& backend = test_backend();
    const Result<> checked =
        all ? check_tactic(backend, tactic, problem, options) : check_first(backend, tactic, problem, options);
    EXPECT_TRUE(checked) << checked.error().to_string();
  }

  // [images, rows, k] x [k, heads * width] -> [images, heads, rows, width].
  static Problem heads(DType type, int64_t rows, int64_t k, int64_t heads, int64_t width, DType result) {
    constexpr int64_t kImages = 2;
    Operand output =
        strided_operand(result, {kImages, rows, heads, width}, {heads * rows * width, width, rows * width, 1});
    output.reassociation = {1, 1, 2};
    return op_problem(kAttributes, {operand(type, {kImages, rows, k}), operand(type, {k, heads * width})}, {output});
  }
  static Problem heads(DType type, int64_t rows, int64_t k, int64_t heads, int64_t width) {
    return GemmParts::heads(type, rows, k, heads, width, type);
  }
};

TEST_F(GemmParts, Heads) {
  for (DType type : {DType::f16, DType::bf16, DType::f32}) check(gemm_tactic(), heads(type, 21, 40, 3, 16));
  check(gemm_tactic(), heads(DType::f16, 21, 40, 3, 16, DType::f32));
  check(gemm_tactic(), heads(DType::f16, 5, 40, 5, 12));  // vectors of half the length
}

TEST_F(GemmParts, EveryTileAndSplit) { check(gemm_tactic(), heads(DType::f16, 37, 520, 3, 24), {}, true); }

TEST_F(GemmParts, ConstantWeightsAndOperands) {
  const Tensor w = small_weights(DType::f16, {40, 48});
  Problem problem = heads(DType::f16, 21, 40, 3, 16);
  problem.inputs[1].constant = problem.inputs[1].weights = &w;
  problem.program = *parse_program("in=3; r3=add r0 r1; r4=mul r3 r2; out r4");
  // A bias of the columns, and what lies in the result's order.
  problem.operands = {strided_operand(DType::f16, {2, 21, 3, 16}, {0, 0, 16, 1}),
                      strided_operand(DType::f32, {2, 21, 3, 16}, {3 * 21 * 16, 16, 21 * 16, 1})};
  check(gemm_tactic(), problem);
  for (int64_t rows : {1, 3}) {
    Problem few = heads(DType::f16, rows, 40, 3, 16);
    few.inputs[1].constant = few.inputs[1].weights = &w;
    check(gemv_tactic(), few, {}, true);
  }
}

// Rows in parts as well: [images * rows, k] -> [3, images, heads, rows, width].
TEST_F(GemmParts, RowsInParts) {
  constexpr int64_t kImages = 3, kRows = 11, kHeads = 2, kWidth = 8;
  Operand output =
      strided_operand(DType::f16, {kImages, kRows, 3, kHeads, kWidth},
                      {kHeads * kRows * kWidth, kWidth, kImages * kHeads * kRows * kWidth, kRows * kWidth, 1});
  output.reassociation = {2, 3};
  check(gemm_tactic(),
        op_problem(kAttributes,
                   {operand(DType::f16, {kImages * kRows, 24}), operand(DType::f16, {24, 3 * kHeads * kWidth})},
                   {output}));
}

TEST_F(GemmParts, SymbolicBatchAndLength) {
  const std::vector<int64_t> symbols = {3, 13};
  const Expr batch = Expr::symbol(0), length = Expr::symbol(1);
  const Tensor w = small_weights(DType::f16, {40, 48});
  Operand output = symbolic_operand(DType::f16, {batch, length, 3, 16}, symbols);
  output.strides = {length * 48, 16, length * 16, 1};
  output.opt_strides = {13 * 48, 16, 13 * 16, 1};
  output.reassociation = {1, 1, 2};
  Problem problem =
      op_problem(kAttributes,
                 {symbolic_operand(DType::f16, {batch, length, 40}, symbols), operand(DType::f16, {40, 48})}, {output});
  problem.inputs[1].constant = problem.inputs[1].weights = &w;
  check(gemm_tactic(), problem, symbols);
}

TEST_F(GemmParts, WhatIsRefused) {
  EXPECT_EQ(refusal_of(gemm_tactic(), heads(DType::f16, 8, 16, 3, 6)), "columns in runs that no vector fits");
  EXPECT_EQ(refusal_of(gemm_tactic(), heads(DType::f32, 8, 16, 3, 5)), "columns in runs that no vector fits");
  Problem scattered = heads(DType::f16, 8, 16, 2, 8);
  scattered.outputs[0].strides = {128, 1, 64, 8};
  EXPECT_EQ(refusal_of(gemm_tactic(), scattered), "columns in runs that no vector fits");
}

}  // namespace
}  // namespace lathe::cuda
