// SPDX-License-Identifier: Apache-2.0
// Products that read operands in another order than they lie in: heads that are joined as they are read, and
// transposed views.
#include <gtest/gtest.h>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"

namespace lathe::cuda {

const Tactic& gemm_tactic();
const Tactic& gemv_tactic();

namespace {

const MatmulAttrs kAttributes;

class GemmJoined : public testing::Test {
 protected:
  void check(const Tactic& tactic, const Problem& problem, const std::vector<int64_t>& symbols = {}, bool all = false) {
    CheckOptions options;
    options.symbols = symbols;
    if (problem.outputs[0].dtype == DType::f16) options.tolerance = 4e-3;
    if (problem.outputs[0].dtype == DType::bf16) options.tolerance = 3e-2;
    if (problem.tf32) options.tolerance = 8e-3;
    const Backend& backend = test_backend();
    const Result<> checked =
        all ? check_tactic(backend, tactic, problem, options) : check_first(backend, tactic, problem, options);
    EXPECT_TRUE(checked) << checked.error().to_string();
  }

  // [images, heads, rows, width] read as [images, rows, heads * width].
  static Operand joined(DType type, int64_t images, int64_t rows, int64_t heads, int64_t width) {
    Operand a = strided_operand(type, {images, rows, heads, width}, {heads * rows * width, width, rows * width, 1});
    a.reassociation = {1, 1, 2};
    return a;
  }
  static Problem product(Operand a, int64_t columns) {
    const Dims dims = opt_whole_dims(a);
    const DType type = a.dtype, result = type == DType::i8 ? DType::i32 : type;
    return op_problem(kAttributes, {std::move(a), operand(type, {dims.back(), columns})},
                      {operand(result, {dims[0], dims[1], columns})});
  }
};

TEST_F(GemmJoined, EveryType) {
  for (DType type : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::i32})
    check(gemm_tactic(), product(joined(type, 2, 21, 3, 16), 40));
  Problem tf32 = product(joined(DType::f32, 2, 21, 3, 16), 40);
  tf32.tf32 = true;
  check(gemm_tactic(), tf32);
  check(gemm_tactic(), product(joined(DType::f16, 2, 21, 5, 12), 24));  // copies of half the length
}

TEST_F(GemmJoined, EveryTileAndSplit) {
  check(gemm_tactic(), product(joined(DType::f16, 3, 37, 11, 48), 72), {}, true);
  check(gemm_tactic(), product(joined(DType::f32, 2, 19, 9, 20), 36), {}, true);
}

// Heads wider than a panel.
TEST_F(GemmJoined, WideHeads) {
  check(gemm_tactic(), product(joined(DType::f16, 2, 9, 3, 136), 24));
  check(gemm_tactic(), product(joined(DType::f16, 2, 9, 2, 256), 24));
}

TEST_F(GemmJoined, ConstantWeightsAndOperands) {
  const Tensor w = small_weights(DType::f16, {48, 40});
  Problem problem = product(joined(DType::f16, 2, 21, 3, 16), 40);
  problem.inputs[1].constant = problem.inputs[1].weights = &w;
  problem.program = *parse_program("in=3; r3=add r0 r1; r4=add r3 r2; out r4");
  problem.operands = {operand(DType::f16, {40}), operand(DType::f16, {2, 21, 40})};
  check(gemm_tactic(), problem);
  problem.inputs[1].constant = problem.inputs[1].weights = nullptr;  // computed, and transposed
  problem.inputs[1] = strided_operand(DType::f16, {48, 40}, {1, 48});
  check(gemm_tactic(), problem);
}

TEST_F(GemmJoined, LevelsByConstantWeights) {
  const Tensor w = any_levels({96, 24}, 3);
  Problem problem = product(joined(DType::i8, 2, 21, 3, 32), 24);
  problem.inputs[1].constant = problem.inputs[1].weights = &w;
  check(gemm_tactic(), problem);
}

// [images, heads, rows, width] read as [images * rows, heads * width], and three parts of a row.
TEST_F(GemmJoined, RowsInParts) {
  Operand a = joined(DType::f16, 3, 21, 2, 24);
  a.reassociation = {2, 2};
  check(gemm_tactic(), op_problem(kAttributes, {a, operand(DType::f16, {48, 40})}, {operand(DType::f16, {63, 40})}));
  Operand b = strided_operand(DType::f16, {2, 5, 7, 3, 16}, {16, 7 * 32, 32, 5 * 7 * 32, 1});
  b.reassociation = {3, 2};
  check(gemm_tactic(),
        op_problem(kAttributes, {b, operand(DType::f16, {48, 40})}, {operand(DType::f16, {70, 40})}, "", {}));
}

// Results that are split again.
TEST_F(GemmJoined, HeadsToHeads) {
  Problem problem = product(joined(DType::f16, 2, 21, 3, 16), 64);
  problem.outputs = {strided_operand(DType::f16, {2, 21, 4, 16}, {4 * 21 * 16, 16, 21 * 16, 1})};
  problem.outputs[0].reassociation = {1, 1, 2};
  check(gemm_tactic(), problem);
}

// B of its own for each image: the batch does not lengthen the rows.
TEST_F(GemmJoined, ABatchOfProducts) {
  Problem problem = product(joined(DType::f16, 2, 21, 3, 16), 40);
  problem.inputs[1] = operand(DType::f16, {2, 48, 40});
  check(gemm_tactic(), problem);
}

TEST_F(GemmJoined, SymbolicBatchAndLength) {
  const std::vector<int64_t> symbols = {3, 13};
  const Expr batch = Expr::symbol(0), length = Expr::symbol(1);
  const Tensor w = small_weights(DType::f16, {48, 40});
  Operand a = symbolic_operand(DType::f16, {batch, length, 3, 16}, symbols);
  a.strides = {length * 48, 16, length * 16, 1};
  a.opt_strides = {13 * 48, 16, 13 * 16, 1};
  a.reassociation = {1, 1, 2};
  Problem problem = op_problem(kAttributes, {a, operand(DType::f16, {48, 40})},
                               {symbolic_operand(DType::f16, {batch, length, 40}, symbols)});
  problem.inputs[1].constant = problem.inputs[1].weights = &w;
  check(gemm_tactic(), problem, symbols);
}

// A sum over heads and their elements, which the second operand has as one dimension.
TEST_F(GemmJoined, EinsumsOverHeads) {
  EinsumAttrs attrs;
  attrs.equation = "bhsd,hdn->bsn";
  Problem problem = op_problem(attrs, {operand(DType::f16, {2, 3, 21, 16}), operand(DType::f16, {3, 16, 40})},
                               {operand(DType::f16, {2, 21, 40})});
  check(gemm_tactic(), problem);
  problem.inputs[1] = strided_operand(DType::f16, {3, 16, 40}, {640, 1, 16});
  EXPECT_EQ(refusal_of(gemm_tactic(), problem), "the summed dimensions are not one of the second operand");
}

// [images, rows, heads, width] as [images, heads, rows, width], both operands: strides.
TEST_F(GemmJoined, TransposedViews) {
  Operand q = strided_operand(DType::f16, {2, 3, 21, 16}, {21 * 48, 16, 48, 1});
  Operand k = strided_operand(DType::f16, {2, 3, 16, 37}, {37 * 48, 16, 1, 48});
  q.reassociation = k.reassociation = {1, 1, 1, 1};
  check(gemm_tactic(), op_problem(kAttributes, {q, k}, {operand(DType::f16, {2, 3, 21, 37})}));
  EXPECT_EQ(refusal_of(gemv_tactic(), op_problem(kAttributes, {q, k}, {operand(DType::f16, {2, 3, 21, 37})})),
            "an input in another order");
}

// Parts that continue each other are one: a head of one row.
TEST_F(GemmJoined, OneRow) {
  const Tensor w = small_weights(DType::f16, {48, 40});
  Problem problem = product(joined(DType::f16, 2, 1, 3, 16), 40);
  problem.inputs[1].constant = problem.inputs[1].weights = &w;
  check(gemm_tactic(), problem);
  check(gemv_tactic(), problem);
  problem = product(joined(DType::f16, 2, 2, 3, 16), 40);
  problem.inputs[1].constant = problem.inputs[1].weights = &w;
  EXPECT_EQ(refusal_of(gemv_tactic(), problem), "collapsed columns");
}

TEST_F(GemmJoined, WhatIsRefused) {
  EXPECT_EQ(refusal_of(gemm_tactic(), product(joined(DType::f16, 2, 8, 3, 6), 16)),
            "collapsed columns in runs that no vector fits");
  EXPECT_EQ(refusal_of(gemm_tactic(), product(joined(DType::i8, 2, 8, 3, 4), 16)),
            "collapsed columns in runs that no vector fits");
  Operand scattered = joined(DType::f16, 2, 8, 4, 8);
  scattered.strides = {256, 1, 8, 32};
  EXPECT_EQ(refusal_of(gemm_tactic(), product(scattered, 16)), "collapsed columns that are not contiguous");
  Operand far = joined(DType::f16, 200, 1, 2, 8);
  far.strides = {int64_t{1} << 30, 16, 32, 1};
  EXPECT_EQ(refusal_of(gemm_tactic(), product(far, 16)), "rows that lie too far apart");
  Problem second = product(operand(DType::f16, {2, 8, 24}), 16);
  second.inputs[1] = strided_operand(DType::f16, {3, 8, 16}, {8, 24, 1});
  second.inputs[1].reassociation = {2, 1};
  EXPECT_EQ(refusal_of(gemm_tactic(), second), "collapsed dimensions of the second operand");
  Operand batch = strided_operand(DType::f16, {2, 3, 8, 16}, {128, 256, 16, 1});
  batch.reassociation = {2, 1, 1};
  Problem batches = product(batch, 16);
  EXPECT_EQ(refusal_of(gemm_tactic(), batches), "collapsed dimensions of a batch");
  Operand across = strided_operand(DType::i8, {2, 8, 32}, {256, 1, 8});
  across.reassociation = {1, 1, 1};
  EXPECT_EQ(refusal_of(gemm_tactic(), product(across, 16)),
            "operands in another order whose neighbours are not along K");
  Operand odd = strided_operand(DType::f16, {2, 7, 32}, {7 * 32, 1, 7});
  odd.reassociation = {1, 1, 1};
  EXPECT_EQ(refusal_of(gemm_tactic(), product(odd, 16)), "operands in another order whose rows no vector fits");
}

}  // namespace
}  // namespace lathe::cuda
