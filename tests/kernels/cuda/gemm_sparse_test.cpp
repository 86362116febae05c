// SPDX-License-Identifier: Apache-2.0
// Products and convolutions that leave out zeros of 2:4 sparse weights.
#include <gtest/gtest.h>

#include "fixtures/ask_tactic.h"
#include "fixtures/sparse_tensor.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/gemm/tile_tactic.h"
#include "ops/rules.h"

namespace lathe::cuda {

const Tactic& gemm_sparse_tactic();
const Tactic& conv_sparse_tactic();

namespace {

const MatmulAttrs kPlain;
const ConvolutionAttrs kWindow;

void check(const Tactic& tactic, const Problem& problem, const Config& config, const CheckOptions& options = {}) {
  const Result<> result = check_kernel(test_backend(), tactic, problem, config, options);
  EXPECT_TRUE(result) << config.text << ", " << to_text(problem) << ": " << result.error().to_string();
}

void check_first(const Tactic& tactic, const Problem& problem, const CheckOptions& options = {}) {
  const std::optional<std::string> refusal = refusal_of(tactic, problem);
  ASSERT_FALSE(refusal) << *refusal;
  check(tactic, problem, configs_of(tactic, problem).front(), options);
}

// A product with these weights, which outlive it.
Problem product(const MatmulAttrs& attrs, Operand a, const Tensor& weights, Dims c) {
  const DType type = weights.dtype();
  Problem problem =
      op_problem(attrs, {std::move(a), operand(type, weights.dims())}, {operand(sum_dtype(type), std::move(c))});
  problem.inputs[1].constant = problem.inputs[1].weights = &weights;
  problem.sparse = true;
  return problem;
}

MatmulAttrs with_rows_along_k() {
  MatmulAttrs attrs;
  attrs.transpose_b = true;
  return attrs;
}

// Every tile for a product of the type.
std::vector<Config> every_config(DType type, int64_t m, int64_t n, int64_t k) {
  gemm::Extent extent;
  extent.dtype = type, extent.output = sum_dtype(type);
  extent.sparse = true;
  extent.target = test_target();
  extent.m = m, extent.n = n, extent.k = k;
  return gemm::every_config(extent);
}

TEST(CudaGemmSparse, EveryTileMultiplies) {
  const MatmulAttrs attrs = with_rows_along_k();
  for (const DType type : {DType::f16, DType::bf16, DType::i8}) {
    const Tensor weights = sparse_tensor(type, {72, 272}, 1, 3);
    const Problem problem = product(attrs, operand(type, {37, 272}), weights, {37, 72});
    for (const Config& config : every_config(type, 37, 72, 272)) {
      const auto& tile = config.as<gemm::TileShape>();
      EXPECT_TRUE(config.sparse && tile.unit == gemm::TileShape::sparse) << config.text;
      const bool is_wanted = type == DType::f16 || tile.m == 64;  // the instruction alone is another
      if (tile.splits == 1 && is_wanted) check(gemm_sparse_tactic(), problem, config);
    }
  }
}

TEST(CudaGemmSparse, AnyExtents) {
  const MatmulAttrs attrs = with_rows_along_k();
  for (const DType type : {DType::f16, DType::i8})
    for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{
             {1, 1, 1}, {5, 13, 35}, {17, 33, 66}, {64, 16, 4}, {130, 40, 129}, {3, 250, 258}}) {
      const Tensor weights = sparse_tensor(type, {n, k}, 1, static_cast<uint32_t>(m));
      check_first(gemm_sparse_tactic(), product(attrs, operand(type, {m, k}), weights, {m, n}));
      const Tensor transposed = sparse_tensor(type, {k, n}, 0, static_cast<uint32_t>(n));
      check_first(gemm_sparse_tactic(), product(kPlain, operand(type, {m, k}), transposed, {m, n}));
    }
}

TEST(CudaGemmSparse, SplitsAddUp) {
  for (const DType type : {DType::f16, DType::i8}) {
    const Tensor weights = sparse_tensor(type, {1030, 24}, 0, 4);
    Problem problem = product(kPlain, operand(type, {20, 1030}), weights, {20, 24});
    problem.operands = {operand(DType::f32, {24})};
    problem.program = *parse_program("in=2; r2=add r0 r1; r3=relu r2; out r3");
    problem.outputs[0].dtype = DType::f32;
    CheckOptions loose;
    loose.tolerance = 1e-4;  // of sums of a thousand products
    std::set<bool> found;    // clusters, and other splits
    for (const Config& config : every_config(type, 20, 24, 1030)) {
      const auto& tile = config.as<gemm::TileShape>();
      if (tile.splits > 1 && found.insert(tile.cluster).second) check(gemm_sparse_tactic(), problem, config, loose);
    }
    EXPECT_EQ(found.size(), test_target().limits.cluster > 1 ? 2u : 1u);
  }
}

TEST(CudaGemmSparse, ProgramsRunOnTheSums) {
  const Tensor weights = sparse_tensor(DType::f16, {64, 44}, 0, 5);
  Problem problem = product(kPlain, operand(DType::f16, {2, 20, 64}), weights, {2, 20, 44});
  problem.operands = {operand(DType::f16, {44}), operand(DType::f16, {2, 20, 44}), operand(DType::f32, {2, 1, 1})};
  problem.program = *parse_program("in=4; r4=add r0 r1; r5=silu r4; r6=fma r5 r3 r2; out r6");
  check_first(gemm_sparse_tactic(), problem);
  problem.outputs[0] = strided_operand(DType::f16, {2, 20, 44}, {880, 1, 20});
  check_first(gemm_sparse_tactic(), problem);
}

TEST(CudaGemmSparse, ProgramsRunBeforeTheProduct) {
  const Tensor weights = sparse_tensor(DType::f16, {64, 24}, 0, 6);
  Problem problem = product(kPlain, operand(DType::f16, {37, 64}), weights, {37, 24});
  put_before(problem, 0, "in=2; r2=add r0 r1; r3=relu r2; out r3", {operand(DType::f16, {64})});
  CheckOptions options;
  options.round_prologues = true;
  check_first(gemm_sparse_tactic(), problem, options);
}

// The columns of the first factor lie side by side: 16-bit floats are transposed on their way to registers.
TEST(CudaGemmSparse, FirstFactorsMayBeTransposed) {
  MatmulAttrs attrs;
  attrs.transpose_a = true;
  const Tensor weights = sparse_tensor(DType::f16, {80, 24}, 0, 7), levels = sparse_tensor(DType::i8, {80, 24}, 0, 7);
  const Problem problem = product(attrs, operand(DType::f16, {80, 40}), weights, {40, 24});
  for (const Config& config : configs_of(gemm_sparse_tactic(), problem)) check(gemm_sparse_tactic(), problem, config);
  EXPECT_EQ(refusal_of(gemm_sparse_tactic(), product(attrs, operand(DType::i8, {80, 40}), levels, {40, 24})),
            "a first factor that is not contiguous along K");
}

// Matrices of weights for each of a batch, or for some of its dimensions; columns that are no whole blocks of 16.
TEST(CudaGemmSparse, WeightsMayBeABatch) {
  const Tensor each = sparse_tensor(DType::f16, {2, 3, 36, 20}, 2, 8),
               shared = sparse_tensor(DType::f16, {3, 36, 20}, 1, 9);
  check_first(gemm_sparse_tactic(), product(kPlain, operand(DType::f16, {2, 3, 21, 36}), each, {2, 3, 21, 20}));
  check_first(gemm_sparse_tactic(), product(kPlain, operand(DType::f16, {2, 3, 21, 36}), shared, {2, 3, 21, 20}));
}

TEST(CudaGemmSparse, RowsMayBeSymbolic) {
  const std::vector<int64_t> symbols = {3, 11};
  const Expr batch = Expr::symbol(0), length = Expr::symbol(1);
  const Tensor weights = sparse_tensor(DType::f16, {32, 24}, 0, 10);
  Problem problem =
      op_problem(kPlain, {symbolic_operand(DType::f16, {batch, length, 32}, symbols), operand(DType::f16, {32, 24})},
                 {symbolic_operand(DType::f16, {batch, length, 24}, symbols)});
  problem.inputs[1].constant = problem.inputs[1].weights = &weights;
  problem.sparse = true;
  CheckOptions options;
  options.symbols = symbols;
  check_first(gemm_sparse_tactic(), problem, options);
}

TEST(CudaGemmSparse, OtherWeightsAreRefused) {
  const Tensor weights = sparse_tensor(DType::f16, {64, 24}, 0, 11), wide = sparse_tensor(DType::f32, {64, 24}, 0, 12);
  Problem problem = product(kPlain, operand(DType::f16, {21, 64}), weights, {21, 24});
  problem.sparse = false;
  EXPECT_EQ(refusal_of(gemm_sparse_tactic(), problem),
            "the weights are not 2:4 sparse, or zeros are not to be left out");
  EXPECT_EQ(refusal_of(conv_sparse_tactic(), problem), refusal_of(gemm_sparse_tactic(), problem));
  EXPECT_EQ(refusal_of(gemm_sparse_tactic(), product(kPlain, operand(DType::f32, {21, 64}), wide, {21, 24})),
            "elements of f32");
}

// A problem that says of weights what does not hold is no kernel.
TEST(CudaGemmSparse, WhatIsLostIsAnError) {
  const Tensor dense = random_tensor(DType::f16, {64, 24}, 13);
  const Problem problem = product(kPlain, operand(DType::f16, {21, 64}), dense, {21, 24});
  const Result<Emission> emission =
      emit(gemm_sparse_tactic(), problem, configs_of(gemm_sparse_tactic(), problem).front());
  ASSERT_FALSE(emission);
  EXPECT_EQ(emission.error().code, ErrorCode::internal);
}

// ---- convolutions

Problem convolution(const ConvolutionAttrs& attrs, Dims x, const Tensor& w) {
  Problem problem = convolution_problem(attrs, operand(w.dtype(), std::move(x), Layout::channels_last), w);
  problem.sparse = true;
  return problem;
}

TEST(CudaConvSparse, WindowsAndPixels) {
  ConvolutionAttrs padded;
  padded.pads_begin = padded.pads_end = {1, 1};
  ConvolutionAttrs strided = padded;
  strided.stride = {2, 1};
  for (const DType type : {DType::f16, DType::bf16, DType::i8}) {
    const Tensor window = sparse_tensor(type, {40, 16, 3, 3}, 1, 1), pixel = sparse_tensor(type, {24, 36, 1, 1}, 1, 2);
    for (const ConvolutionAttrs& attrs : {padded, strided})
      check_first(conv_sparse_tactic(), convolution(attrs, {2, 16, 9, 7}, window));
    check_first(conv_sparse_tactic(), convolution(kWindow, {2, 36, 5, 6}, pixel));
  }
}

TEST(CudaConvSparse, EveryTileReadsWindows) {
  ConvolutionAttrs attrs;
  attrs.pads_begin = attrs.pads_end = {1, 1};
  const Tensor w = sparse_tensor(DType::f16, {72, 16, 3, 3}, 1, 3);
  const Problem problem = convolution(attrs, {1, 16, 9, 9}, w);
  for (const Config& config : configs_of(conv_sparse_tactic(), problem)) check(conv_sparse_tactic(), problem, config);
}

// Channels that fill no vector, and rows of windows that end within a step of K.
TEST(CudaConvSparse, ChannelsNeedNotFillVectors) {
  ConvolutionAttrs attrs;
  attrs.pads_begin = attrs.pads_end = {1, 1};
  for (const int64_t channels : {4, 12, 20}) {
    const Tensor w = sparse_tensor(DType::f16, {10, channels, 3, 3}, 1, 4);
    check_first(conv_sparse_tactic(), convolution(attrs, {1, channels, 6, 5}, w));
  }
}

TEST(CudaConvSparse, Groups) {
  ConvolutionAttrs attrs;
  attrs.groups = 3;
  attrs.pads_begin = attrs.pads_end = {1, 1};
  const Tensor w = sparse_tensor(DType::f16, {60, 8, 3, 3}, 1, 5);  // 20 channels of a group: no whole blocks of 16
  check_first(conv_sparse_tactic(), convolution(attrs, {2, 24, 7, 6}, w));
}

TEST(CudaConvSparse, IntegersAreRequantized) {
  ConvolutionAttrs attrs;
  attrs.pads_begin = attrs.pads_end = {1, 1};
  const Tensor w = sparse_tensor(DType::i8, {24, 32, 3, 3}, 1, 6);
  Problem problem = convolution(attrs, {1, 32, 6, 7}, w);
  const Dims y = problem.outputs[0].opt_dims;
  problem.outputs[0] = operand(DType::i8, y, Layout::channels_last);
  problem.operands = {strided_operand(DType::f32, y, {0, 1, 0, 0}), operand(DType::i8, y, Layout::channels_last)};
  problem.program = *parse_program(
      "in=3; r3=mul r0 r1; r4=affine r2 0.5 -0; r5=add r3 r4; r6=relu r5; r7=round r6; r8=clip r7 -128 127; out r8");
  CheckOptions options;
  options.inputs = {any_levels({1, 32, 6, 7}, 7)};
  options.operands = {small_scales({1, 24, 1, 1})};
  check_first(conv_sparse_tactic(), problem, options);
}

TEST(CudaConvSparse, GatheredImagesAreRefused) {
  const Tensor w = sparse_tensor(DType::f16, {24, 8, 3, 3}, 1, 8);
  Problem problem = convolution(kWindow, {2, 8, 9, 7}, w);
  problem.inputs[0] = operand(DType::f16, {2, 8, 9, 7});
  EXPECT_EQ(refusal_of(conv_sparse_tactic(), problem), "an input that is read element by element");
}

}  // namespace
}  // namespace lathe::cuda
