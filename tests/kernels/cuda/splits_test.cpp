// SPDX-License-Identifier: Apache-2.0
// Products and convolutions whose K is split over blocks, and added up by a second launch or within a cluster.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/gemm/tile_tactic.h"
#include "ops/rules.h"

namespace lathe::cuda {

const Tactic& gemm_tactic();
const Tactic& conv_tactic();

namespace {

void check(const Tactic& tactic, const Problem& problem, const Config& config, const CheckOptions& options) {
  const auto emission = emit(tactic, problem, config);
  ASSERT_TRUE(emission);
  const gemm::TileShape tile = config.as<gemm::TileShape>();
  EXPECT_EQ(emission->launches.size(), tile.cluster ? 1u : 2u);
  EXPECT_EQ(emission->launches[0].launch.cluster, tile.cluster ? tile.splits : 1);
  const Result<> result = check_kernel(test_backend(), tactic, problem, config, options);
  EXPECT_TRUE(result) << config.text << ", " << to_text(problem) << ": " << result.error().to_string();
}

// The configurations with the most splits of each tile, by two launches and in a cluster.
std::vector<Config> most_splits(const std::vector<Config>& configs) {
  const auto splits = [](const Config& config) { return config.as<gemm::TileShape>().splits; };
  std::map<std::vector<int64_t>, Config> best;
  for (const Config& config : configs) {
    const gemm::TileShape t = config.as<gemm::TileShape>();
    const auto [known, is_new] = best.try_emplace({t.m, t.n, t.k, t.warp_m, t.warp_n, t.cluster}, config);
    if (!is_new && splits(known->second) < t.splits) known->second = config;
  }
  std::erase_if(best, [&](const auto& entry) { return splits(entry.second) == 1; });
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

// The first configuration of two launches, and the first of a cluster where the device has them.
void check_both(const Tactic& tactic, Problem problem, const CheckOptions& options) {
  for (const int most : {1, test_target().limits.cluster}) {
    problem.target.limits.cluster = most;
    const std::vector<Config> configs = most_splits(configs_of(tactic, problem));
    const auto found = std::find_if(configs.begin(), configs.end(), [&](const Config& config) {
      return config.as<gemm::TileShape>().cluster == (most > 1);
    });
    ASSERT_NE(found, configs.end()) << to_text(problem);
    check(tactic, problem, *found, options);
  }
}

TEST(CudaSplits, EveryTileMerges) {
  MatmulAttrs attrs;
  attrs.transpose_b = true;
  for (DType type : {DType::f16, DType::f32}) {
    gemm::Extent extent;
    extent.dtype = type, extent.output = DType::f32;
    extent.tensor_core = type == DType::f16;
    extent.target = test_target();
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
    const Dims b = attrs.transpose_b ? Dims{24, 4112} : Dims{4112, 24};
    const Problem problem = product(attrs, type, {20, 4112}, b, {20, 24});
    check_both(gemm_tactic(), problem, exact(problem));
  }
}

TEST(CudaSplits, ProgramsOfBatchesOfSymbolicRows) {
  const MatmulAttrs attrs;
  const Expr batch = Expr::symbol(0), rows = Expr::symbol(1);
  for (const std::vector<int64_t>& symbols : {std::vector<int64_t>{3, 21}, {1, 1}, {2, 130}}) {
    Problem problem = op_problem(attrs,
                                 {symbolic_operand(DType::f16, {batch, rows, 2560}, symbols),
                                  symbolic_operand(DType::f16, {batch, 2560, 40}, symbols)},
                                 {symbolic_operand(DType::f16, {batch, rows, 40}, symbols)},
                                 "in=3; r3=add r0 r1; r4=relu r3; r5=add r4 r2; out r5",
                                 {operand(DType::f16, {40}), symbolic_operand(DType::f16, {batch, rows, 40}, symbols)});
    CheckOptions options = exact(problem);
    options.symbols = symbols;
    options.operands = {small_weights(DType::f16, {40}), small_weights(DType::f16, {symbols[0], symbols[1], 40})};
    check_both(gemm_tactic(), problem, options);
  }
}

TEST(CudaSplits, OutputMayBeTransposed) {
  const MatmulAttrs attrs;
  Problem problem = product(attrs, DType::f16, {20, 1024}, {1024, 24}, {20, 24});
  problem.outputs[0] = strided_operand(DType::f32, {20, 24}, {1, 20});
  check_both(gemm_tactic(), problem, exact(problem));
}

TEST(CudaSplits, ConvolutionsAndTheirGroups) {
  ConvolutionAttrs attrs;
  attrs.pads_begin = attrs.pads_end = {1, 1};
  for (int64_t groups : {1, 2}) {
    attrs.groups = groups;
    const Tensor w = small_weights(DType::f16, {24, 256, 3, 3});
    Problem problem =
        convolution_problem(attrs, operand(DType::f16, {1, 256 * groups, 6, 5}, Layout::channels_last), w);
    problem.outputs[0].dtype = DType::f32;
    problem.operands = {operand(DType::f32, {24, 1, 1})};
    problem.program = *parse_program("in=2; r2=add r0 r1; r3=relu r2; out r3");
    CheckOptions options = exact(problem);
    options.operands = {small_weights(DType::f32, {24, 1, 1})};
    check_both(conv_tactic(), problem, options);
  }
}

}  // namespace
}  // namespace lathe::cuda
