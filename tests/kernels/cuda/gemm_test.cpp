// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/gemm/tile_tactic.h"
#include "ops/rules.h"

namespace lathe::cuda {

const Tactic& gemm_tactic();

namespace {

void check(const Problem& problem, const Config& config, const CheckOptions& options = {}) {
  const Result<> result = check_kernel(test_backend(), gemm_tactic(), problem, config, options);
  EXPECT_TRUE(result) << config.text << ", " << to_text(problem) << ": " << result.error().to_string();
}

void check_first(const Problem& problem, const CheckOptions& options = {}) {
  const std::optional<std::string> refusal = refusal_of(gemm_tactic(), problem);
  ASSERT_FALSE(refusal) << *refusal;
  check(problem, configs_of(gemm_tactic(), problem).front(), options);
}

Problem product_of(const Attributes& attrs, DType type, Dims a, Dims b, Dims c) {
  const DType sums = attrs.kind() == OpKind::matmul ? sum_dtype(type) : type;
  return op_problem(attrs, {operand(type, std::move(a)), operand(type, std::move(b))}, {operand(sums, std::move(c))});
}

Problem product(const MatmulAttrs& attrs, DType type, Dims a, Dims b, Dims c) {
  return product_of(attrs, type, std::move(a), std::move(b), std::move(c));
}

TEST(CudaGemm, EveryTileMultiplies) {
  MatmulAttrs attrs;
  attrs.transpose_b = true;
  for (DType type : {DType::f16, DType::f32}) {
    gemm::Extent extent;
    extent.dtype = extent.output = type;
    extent.tensor_core = type == DType::f16;
    extent.target = test_target();
    extent.m = 37, extent.n = 72, extent.k = 136;
    for (const Config& config : gemm::every_config(extent))
      if (config.as<gemm::TileShape>().splits == 1) check(product(attrs, type, {37, 136}, {72, 136}, {37, 72}), config);
  }
}

TEST(CudaGemm, SplitsAddUp) {
  const MatmulAttrs attrs;
  for (DType type : {DType::f16, DType::i8}) {
    Problem problem = product(attrs, type, {20, 1030}, {1030, 24}, {20, 24});
    problem.operands = {operand(DType::f32, {24})};
    problem.program = *parse_program("in=2; r2=add r0 r1; r3=relu r2; out r3");
    problem.outputs[0].dtype = DType::f32;
    CheckOptions loose;
    loose.tolerance = 1e-4;  // of sums of a thousand products
    bool found = false;
    for (const Config& config : configs_of(gemm_tactic(), problem))
      if (config.as<gemm::TileShape>().splits > 1 && !std::exchange(found, true)) check(problem, config, loose);
    EXPECT_TRUE(found);
  }
}

TEST(CudaGemm, ProgramRunsOnTheSums) {
  const MatmulAttrs attrs;
  Problem problem = product(attrs, DType::f16, {2, 20, 32}, {32, 44}, {2, 20, 44});
  problem.operands = {operand(DType::f16, {44}), operand(DType::f16, {2, 20, 44}), operand(DType::f32, {2, 1, 1})};
  problem.program = *parse_program("in=4; r4=add r0 r1; r5=silu r4; r6=fma r5 r3 r2; out r6");
  check_first(problem);
}

TEST(CudaGemm, OutputMayBeTransposedOrStrided) {
  const MatmulAttrs attrs;
  Problem problem = product(attrs, DType::f16, {20, 32}, {32, 24}, {20, 24});
  problem.outputs[0] = strided_operand(DType::f16, {20, 24}, {1, 20});
  check_first(problem);
  problem.outputs[0] = strided_operand(DType::f16, {20, 24}, {40, 1});
  check_first(problem);
}

TEST(CudaGemm, RowsMayBeSymbolic) {
  const MatmulAttrs attrs;
  const std::vector<int64_t> symbols = {3, 11};
  const Expr batch = Expr::symbol(0), length = Expr::symbol(1);
  const Problem problem =
      op_problem(attrs, {symbolic_operand(DType::f16, {batch, length, 32}, symbols), operand(DType::f16, {32, 24})},
                 {symbolic_operand(DType::f16, {batch, length, 24}, symbols)});
  CheckOptions options;
  options.symbols = symbols;
  check_first(problem, options);
}

// 8-bit integers over their whole range: both operands K-major on tensor cores, otherwise without.
TEST(CudaGemm, IntegersAreRequantized) {
  MatmulAttrs attrs;
  attrs.transpose_b = true;
  const auto quantized = [&](int64_t m, int64_t n, int64_t k, bool constant) {
    const Tensor a = any_levels({m, k}, 1), b = any_levels({n, k}, 2);
    Problem problem = product(attrs, DType::i8, {m, k}, {n, k}, {m, n});
    if (constant) problem.inputs[1].constant = problem.inputs[1].weights = &b;
    problem.operands = {operand(DType::f32, {n}), operand(DType::i8, {m, n})};
    // acc * scale + residual * 0.5, relu, / 0.75, rounded and clamped.
    problem.program = *parse_program(
        "in=3; r3=mul r0 r1; r4=affine r2 0.5 -0; r5=add r3 r4; r6=relu r5; r7=constant 0.75; r8=div r6 r7; "
        "r9=round r8; r10=clip r9 -128 127; out r10");
    problem.outputs[0].dtype = DType::i8;
    CheckOptions options;
    options.inputs = {a, b};
    options.operands = {small_scales({n})};
    for (const Config& config : configs_of(gemm_tactic(), problem)) {
      EXPECT_NE(config.as<gemm::TileShape>().unit, gemm::TileShape::scalar);
      check(problem, config, options);
      if (config.as<gemm::TileShape>().splits > 1) break;
    }
  };
  quantized(21, 24, 48, true);
  quantized(5, 13, 35, true);
  quantized(37, 40, 64, false);
  quantized(1, 100, 1040, true);
  attrs.transpose_b = false;
  Problem problem = product(attrs, DType::i8, {21, 40}, {40, 24}, {21, 24});
  problem.outputs[0].dtype = DType::f32;
  problem.program = *parse_program("in=1; r1=affine r0 0.125 -0; out r1");
  EXPECT_EQ(configs_of(gemm_tactic(), problem).front().as<gemm::TileShape>().unit, gemm::TileShape::scalar);
  check_first(problem);
}

TEST(CudaGemm, EveryTileMultipliesIntegers) {
  MatmulAttrs attrs;
  attrs.transpose_b = true;
  gemm::Extent extent;
  extent.dtype = DType::i8, extent.output = DType::i32;
  extent.target = test_target();
  extent.m = 37, extent.n = 72, extent.k = 272;
  CheckOptions options;
  options.inputs = {any_levels({37, 272}, 3), any_levels({72, 272}, 4)};
  for (const Config& config : gemm::every_config(extent))
    if (config.as<gemm::TileShape>().splits == 1)
      check(product(attrs, DType::i8, {37, 272}, {72, 272}, {37, 72}), config, options);
}

// Small integers are exact in 8-bit floats and so are their sums.
TEST(CudaGemm, EveryTileMultipliesFloatsOf8Bits) {
  MatmulAttrs attrs;
  attrs.transpose_b = true;
  for (const DType type : {DType::f8e4m3fn, DType::f8e5m2}) {
    gemm::Extent extent;
    extent.dtype = type, extent.output = DType::f32;
    extent.target = test_target();
    extent.m = 37, extent.n = 72, extent.k = 272;
    CheckOptions options;
    options.tolerance = 0;
    options.inputs = {small_weights(type, {37, 272}), small_weights(type, {72, 272})};
    Problem problem = product(attrs, type, {37, 272}, {72, 272}, {37, 72});
    problem.outputs[0].dtype = DType::f32;
    for (const Config& config : gemm::every_config(extent))
      if (config.as<gemm::TileShape>().splits == 1) check(problem, config, options);
  }
}

// Small integers are exact in TF32 and so are their sums.
TEST(CudaGemm, Tf32IsUsedWhereAllowed) {
  MatmulAttrs attrs;
  for (bool a : {false, true})
    for (bool b : {false, true}) {
      attrs.transpose_a = a, attrs.transpose_b = b;
      Problem problem =
          product(attrs, DType::f32, a ? Dims{72, 40} : Dims{40, 72}, b ? Dims{36, 72} : Dims{72, 36}, {40, 36});
      problem.tf32 = true;
      CheckOptions options;
      options.tolerance = 0;
      options.inputs = {small_weights(DType::f32, problem.inputs[0].opt_dims),
                        small_weights(DType::f32, problem.inputs[1].opt_dims)};
      EXPECT_NE(configs_of(gemm_tactic(), problem).front().as<gemm::TileShape>().unit, gemm::TileShape::scalar);
      check_first(problem, options);
    }
}

TEST(CudaGemm, StatesWhyItRefuses) {
  const MatmulAttrs attrs;
  Problem problem = product(attrs, DType::f16, {20, 32}, {32, 24}, {20, 24});
  problem.inputs[0] = strided_operand(DType::f16, {20, 32}, {64, 2});
  EXPECT_NE(refusal_of(gemm_tactic(), problem).value_or("").find("contiguous"), std::string::npos);
  EXPECT_TRUE(refusal_of(gemm_tactic(), pointwise_problem("in=1; out r0", {operand(DType::f16, {4})}, {})));
}

}  // namespace
}  // namespace lathe::cuda
