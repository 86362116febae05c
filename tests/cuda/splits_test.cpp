// SPDX-License-Identifier: Apache-2.0
// Products and convolutions whose K is split over blocks, and added up by a second launch.
#include <gtest/gtest.h>

#include <map>

#include "cuda/convolution_problem.h"
#include "cuda/emulated_device.h"
#include "kernels/cuda/gemm/tile_tactic.h"
#include "ops/rules.h"

namespace lathe::cuda {

const Tactic& gemm_tactic();
const Tactic& conv_tactic();

namespace {

void check(const Tactic& tactic, const Problem& problem, const Config& config, const CheckOptions& options) {
  const auto emission = tactic.emit(problem, config);
  ASSERT_TRUE(emission);
  EXPECT_EQ(emission->launches.size(), 2u);
  const Result<> result = check_kernel(test_backend(), tactic, problem, config, options);
  EXPECT_TRUE(result) << config.text << ", " << to_text(problem) << ": " << result.error().to_string();
}

// The configuration with the most splits of each tile.
std::vector<Config> most_splits(const std::vector<Config>& configs) {
  std::map<std::vector<int64_t>, Config> best;
  for (const Config& config : configs) {
    std::vector<int64_t> tile = config.values;
    const int64_t splits = tile.back();
    tile.pop_back();
    const auto known = best.find(tile);
    if (splits > 1 && (known == best.end() || known->second.values.back() < splits)) best[tile] = config;
  }
  std::vector<Config> result;
  for (auto& [tile, config] : best) result.push_back(std::move(config));
  return result;
}

// Small integers, whose sums are exact in any order.
CheckOptions exact(const Problem& problem) {
  CheckOptions options;
  options.tolerance = 0;
  for (const Operand& input : problem.inputs) options.inputs.push_back(small_weights(input.dtype, input.opt_dims));
  return options;
}

Problem product(const MatmulAttrs& attrs, DType type, Dims a, Dims b, Dims c) {
  return op_problem(attrs, {operand(type, std::move(a)), operand(type, std::move(b))},
                    {operand(type == DType::f64 || !is_floating(type) ? sum_dtype(type) : DType::f32, std::move(c))});
}

TEST(CudaSplits, EveryTileMerges) {
  MatmulAttrs attrs;
  attrs.transpose_b = true;
  for (DType type : {DType::f16, DType::f32}) {
    gemm::Extent extent;
    extent.dtype = type, extent.output = DType::f32;
    extent.tensor_core = type == DType::f16;
    extent.m = 37, extent.n = 72, extent.k = 1096;
    const Problem problem = product(attrs, type, {37, 1096}, {72, 1096}, {37, 72});
    const std::vector<Config> configs = most_splits(gemm::every_config(extent));
    EXPECT_GE(configs.size(), 6u);
    for (const Config& config : configs) check(gemm_tactic(), problem, config, exact(problem));
  }
}

TEST(CudaSplits, EveryTypeOfSums) {
  MatmulAttrs attrs;
  for (DType type : {DType::bf16, DType::f64, DType::i8, DType::i32, DType::i64}) {
    attrs.transpose_b = type == DType::i8;
    const Dims b = attrs.transpose_b ? Dims{24, 1040} : Dims{1040, 24};
    const Problem problem = product(attrs, type, {20, 1040}, b, {20, 24});
    const std::vector<Config> configs = most_splits(gemm_tactic().configs(problem));
    ASSERT_FALSE(configs.empty()) << name_of(type);
    check(gemm_tactic(), problem, configs.front(), exact(problem));
  }
}

TEST(CudaSplits, ProgramsOfBatchesOfSymbolicRows) {
  const MatmulAttrs attrs;
  const Expr batch = Expr::symbol(0), rows = Expr::symbol(1);
  for (const std::vector<int64_t>& symbols : {std::vector<int64_t>{3, 21}, {1, 1}, {2, 130}}) {
    Problem problem = op_problem(attrs,
                                 {symbolic_operand(DType::f16, {batch, rows, 640}, symbols),
                                  symbolic_operand(DType::f16, {batch, 640, 40}, symbols)},
                                 {symbolic_operand(DType::f16, {batch, rows, 40}, symbols)},
                                 "in=3; r3=add r0 r1; r4=relu r3; r5=add r4 r2; out r5",
                                 {operand(DType::f16, {40}), symbolic_operand(DType::f16, {batch, rows, 40}, symbols)});
    CheckOptions options = exact(problem);
    options.symbols = symbols;
    options.operands = {small_weights(DType::f16, {40}), small_weights(DType::f16, {symbols[0], symbols[1], 40})};
    const std::vector<Config> configs = most_splits(gemm_tactic().configs(problem));
    ASSERT_FALSE(configs.empty());
    check(gemm_tactic(), problem, configs.front(), options);
  }
}

TEST(CudaSplits, OutputMayBeTransposed) {
  const MatmulAttrs attrs;
  Problem problem = product(attrs, DType::f16, {20, 1024}, {1024, 24}, {20, 24});
  problem.outputs[0] = strided_operand(DType::f32, {20, 24}, {1, 20});
  const std::vector<Config> configs = most_splits(gemm_tactic().configs(problem));
  ASSERT_FALSE(configs.empty());
  check(gemm_tactic(), problem, configs.front(), exact(problem));
}

TEST(CudaSplits, ConvolutionsAndTheirGroups) {
  ConvolutionAttrs attrs;
  attrs.pads_begin = attrs.pads_end = {1, 1};
  for (int64_t groups : {1, 2}) {
    attrs.groups = groups;
    const Tensor w = small_weights(DType::f16, {24, 64, 3, 3});
    Problem problem = convolution_problem(attrs, operand(DType::f16, {1, 64 * groups, 6, 5}, Layout::channels_last), w);
    problem.outputs[0].dtype = DType::f32;
    problem.operands = {operand(DType::f32, {24, 1, 1})};
    problem.program = *parse_program("in=2; r2=add r0 r1; r3=relu r2; out r3");
    CheckOptions options = exact(problem);
    options.operands = {small_weights(DType::f32, {24, 1, 1})};
    const std::vector<Config> configs = most_splits(conv_tactic().configs(problem));
    ASSERT_FALSE(configs.empty());
    check(conv_tactic(), problem, configs.front(), options);
  }
}

}  // namespace
}  // namespace lathe::cuda
