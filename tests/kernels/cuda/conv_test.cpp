// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/gemm/tile_tactic.h"

namespace lathe::cuda {

const Tactic& conv_tactic();

namespace {

void check(const Problem& problem, const Config& config, const CheckOptions& options = {}) {
  const Result<> result = check_kernel(test_backend(), conv_tactic(), problem, config, options);
  EXPECT_TRUE(result) << config.text << ", " << to_text(problem) << ": " << result.error().to_string();
}

void check_first(const Problem& problem, const CheckOptions& options = {}) {
  const std::optional<std::string> refusal = refusal_of(conv_tactic(), problem);
  ASSERT_FALSE(refusal) << *refusal;
  const std::vector<Config> configs = configs_of(conv_tactic(), problem);
  ASSERT_FALSE(configs.empty());
  check(problem, configs.front(), options);
}

// Vectors of fewer than eight channels, a last vector in part, and pixels further apart than their channels.
TEST(CudaConv, ChannelsNeedNotFillVectors) {
  ConvolutionAttrs attrs;
  attrs.pads_begin = attrs.pads_end = {1, 1};
  for (int64_t channels : {4, 6, 12}) {
    const Tensor w = small_weights(DType::f16, {10, channels, 3, 3});
    check_first(convolution_problem(attrs, operand(DType::f16, {1, channels, 6, 5}, Layout::channels_last), w));
  }
  const Tensor w = small_weights(DType::f16, {10, 10, 3, 3});
  check_first(convolution_problem(attrs, strided_operand(DType::f16, {2, 10, 6, 5}, {480, 1, 80, 16}), w));
}

TEST(CudaConv, PlanarImagesAndOddChannelsAreGathered) {
  ConvolutionAttrs attrs;
  attrs.pads_begin = attrs.pads_end = {3, 3};
  attrs.stride = {2, 2};
  for (DType type : {DType::f16, DType::f32}) {
    const Tensor w = small_weights(type, {24, 3, 7, 7});
    CheckOptions options;
    options.inputs = {small_weights(type, {2, 3, 13, 12}), w};  // sums that are exact in any order
    check_first(convolution_problem(attrs, operand(type, {2, 3, 13, 12}), w), options);
    check_first(convolution_problem(attrs, operand(type, {2, 3, 13, 12}, Layout::channels_last), w), options);
  }
}

TEST(CudaConv, EveryTileReadsWindows) {
  ConvolutionAttrs attrs;
  attrs.pads_begin = attrs.pads_end = {1, 1};
  for (DType type : {DType::f16, DType::f32}) {
    const Tensor w = small_weights(type, {72, 16, 3, 3});
    const Problem problem = convolution_problem(attrs, operand(type, {1, 16, 9, 9}, Layout::channels_last), w);
    gemm::Extent extent;
    extent.dtype = extent.output = type;
    extent.tensor_core = type == DType::f16;
    extent.target = test_target();
    extent.copy_width = type == DType::f16 ? 8 : 4;
    extent.m = 81, extent.n = 72, extent.k = 144;
    for (const Config& config : gemm::every_config(extent))
      if (config.as<gemm::TileShape>().splits == 1) check(problem, config);
  }
}

TEST(CudaConv, EveryTileReadsWindowsOfIntegers) {
  ConvolutionAttrs attrs;
  attrs.pads_begin = attrs.pads_end = {1, 1};
  const Tensor w = any_levels({72, 32, 3, 3}, 3);
  const Problem problem = convolution_problem(attrs, operand(DType::i8, {1, 32, 9, 9}, Layout::channels_last), w);
  gemm::Extent extent;
  extent.dtype = DType::i8, extent.output = DType::i32;
  extent.target = test_target();
  extent.copy_width = 16;
  extent.m = 81, extent.n = 72, extent.k = 288;
  CheckOptions options;
  options.inputs = {any_levels({1, 32, 9, 9}, 4)};
  bool found = false;
  for (const Config& config : gemm::every_config(extent)) {
    if (config.as<gemm::TileShape>().splits > 1) continue;
    found |= config.as<gemm::TileShape>().unit == gemm::TileShape::warpgroup;
    check(problem, config, options);
  }
  EXPECT_TRUE(found);
}

// Dense, window and gathered reading; channels that fill no vector, groups, a residual of integers.
TEST(CudaConv, IntegersAreRequantized) {
  const auto quantized = [](ConvolutionAttrs attrs, Dims x, Dims w, Layout layout) {
    const Tensor weights = any_levels(w, 5);
    Problem problem = convolution_problem(attrs, operand(DType::i8, x, layout), weights);
    const Dims y = problem.outputs[0].opt_dims;
    problem.outputs[0] = operand(DType::i8, y, Layout::channels_last);
    Dims channel_strides(y.size(), 0);
    channel_strides[1] = 1;
    problem.operands = {strided_operand(DType::f32, y, channel_strides), operand(DType::i8, y, Layout::channels_last)};
    problem.program = *parse_program(
        "in=3; r3=mul r0 r1; r4=affine r2 0.5 -0; r5=add r3 r4; r6=relu r5; r7=constant 0.75; r8=div r6 r7; "
        "r9=round r8; r10=clip r9 -128 127; out r10");
    Dims channel(y.size(), 1);
    channel[1] = y[1];
    CheckOptions options;
    options.inputs = {any_levels(x, 6)};
    options.operands = {small_scales(channel)};
    check_first(problem, options);
  };
  ConvolutionAttrs attrs;
  quantized(attrs, {2, 32, 5, 7}, {24, 32, 1, 1}, Layout::channels_last);
  attrs.stride = {2, 1};
  quantized(attrs, {2, 40, 5, 7}, {24, 40, 1, 1}, Layout::channels_last);
  attrs.pads_begin = attrs.pads_end = {1, 1};
  quantized(attrs, {1, 16, 7, 6}, {20, 16, 3, 3}, Layout::channels_last);
  quantized(attrs, {1, 12, 7, 6}, {9, 12, 3, 3}, Layout::channels_last);
  quantized(attrs, {1, 5, 7, 6}, {9, 5, 3, 3}, Layout::channels_last);
  quantized(attrs, {2, 3, 9, 8}, {16, 3, 3, 3}, Layout::linear);
  attrs.groups = 2;
  quantized(attrs, {1, 32, 6, 5}, {24, 16, 3, 3}, Layout::channels_last);
}

// What the copy engine brings, by every tile of blocks that stay, with a residual of each type behind some of them:
// pixels and channels that fill no tile, and a few blocks that take several.
TEST(CudaConv, PixelsOfPanels) {
  const ConvolutionAttrs attrs;
  const Dims x = {2, 80, 9, 17}, w = {192, 80, 1, 1}, y = {2, 192, 9, 17};
  const std::vector<std::pair<DType, DType>> types = {{DType::i8, DType::i8},   {DType::i8, DType::u8},
                                                      {DType::i8, DType::f16},  {DType::f16, DType::f16},
                                                      {DType::f16, DType::f32}, {DType::bf16, DType::bf16}};
  for (const auto& [type, residual] : types) {
    const bool is_integer = type == DType::i8;
    const Tensor weights = is_integer ? any_levels(w, 5) : small_weights(type, w);
    Problem problem = convolution_problem(attrs, operand(type, x, Layout::channels_last), weights);
    problem.target.cores = 3;
    problem.outputs[0] = operand(is_integer ? DType::i8 : type, y, Layout::channels_last);
    problem.operands = {strided_operand(DType::f32, y, {0, 1, 0, 0}), operand(residual, y, Layout::channels_last)};
    problem.program = *parse_program(
        is_integer ? "in=3; r3=mul r0 r1; r4=constant 0.75; r5=div r3 r4; r6=round r5; r7=clip r6 -128 127; "
                     "r8=affine r7 0.75 -0; r9=affine r2 0.5 -0; r10=add r8 r9; r11=constant 1.3; r12=div r10 r11; "
                     "r13=round r12; r14=affine r13 1 7; r15=clip r14 -128 127; out r15"
                   : "in=3; r3=add r0 r1; r4=add r3 r2; r5=relu r4; out r5");
    CheckOptions options;
    options.inputs = {is_integer ? any_levels(x, 6) : small_weights(type, x)};
    options.operands = {is_integer ? small_scales({1, 192, 1, 1}) : Tensor()};
    gemm::Extent extent;
    extent.dtype = type, extent.output = problem.outputs[0].dtype;
    extent.target = test_target(), extent.operands = 1;
    extent.copied = extent.weights_first = true, extent.neighbours = is_integer ? 16 : 8;
    extent.m = 306, extent.n = 192, extent.k = 80;
    std::set<std::pair<int64_t, int64_t>> tiles;
    for (const Config& config : gemm::every_config(extent)) {
      const auto& tile = config.as<gemm::TileShape>();
      if (tile.unit != gemm::TileShape::pipeline || tile.splits > 1) continue;
      if (residual != DType::i8 && (tile.m != 256 && !(tile.turns && tile.m == 128 && tile.peers == 1))) continue;
      tiles.insert({tile.m, tile.n});
      check(problem, config, options);
    }
    EXPECT_GE(tiles.size(), residual == DType::i8 ? 10u : 2u);
  }
}

// Whether the copy engine may bring the pixels, as the tactic offers it.
TEST(CudaConv, WhatTheCopyEngineBrings) {
  struct Case {
    Dims x, w;
    Layout layout = Layout::channels_last;
    int64_t groups = 1;
    bool warpgroups = true;
  };
  const auto is_offered = [](const Case& c) {
    ConvolutionAttrs attrs;
    attrs.groups = c.groups;
    const Tensor w = small_weights(DType::f16, c.w);
    Problem problem = convolution_problem(attrs, operand(DType::f16, c.x, c.layout), w);
    problem.target.limits.warpgroups = c.warpgroups;
    return std::ranges::any_of(configs_of(conv_tactic(), problem), [](const Config& config) {
      return config.as<gemm::TileShape>().unit == gemm::TileShape::pipeline;
    });
  };
  const Dims x = {32, 64, 56, 56};
  EXPECT_TRUE(is_offered({x, {128, 64, 1, 1}}));
  EXPECT_FALSE(is_offered({.x = x, .w = {128, 32, 1, 1}, .groups = 2}));
  EXPECT_FALSE(is_offered({.x = x, .w = {128, 64, 1, 1}, .layout = Layout::linear}));
  EXPECT_FALSE(is_offered({{32, 60, 56, 56}, {128, 60, 1, 1}}));  // pixels at no multiples of 16 bytes
  EXPECT_FALSE(is_offered({.x = x, .w = {128, 64, 1, 1}, .warpgroups = false}));
}

TEST(CudaConv, ProgramRunsOnTheSumsOfSplits) {
  ConvolutionAttrs attrs;
  attrs.pads_begin = attrs.pads_end = {1, 1};
  const Tensor w = small_weights(DType::f16, {24, 256, 3, 3});
  Problem problem = convolution_problem(attrs, operand(DType::f16, {1, 256, 5, 5}, Layout::channels_last), w);
  problem.operands = {strided_operand(DType::f32, {1, 24, 5, 5}, {0, 1, 0, 0}),
                      operand(DType::f16, {1, 24, 5, 5}, Layout::channels_last)};
  problem.program = *parse_program("in=3; r3=add r0 r1; r4=add r3 r2; r5=relu r4; out r5");
  problem.outputs[0].strides[3] = 40, problem.outputs[0].strides[2] = 200, problem.outputs[0].strides[0] = 1000;
  problem.outputs[0].opt_strides = {1000, 1, 200, 40};
  size_t splits = 0;
  for (const Config& config : configs_of(conv_tactic(), problem)) {
    const bool split = config.as<gemm::TileShape>().splits > 1;
    if ((split ? splits++ : 0) < 1) check(problem, config);
    if (splits == 1) break;
  }
  EXPECT_EQ(splits, 1u);
}

TEST(CudaConv, BatchMayBeSymbolic) {
  ConvolutionAttrs attrs;
  attrs.pads_begin = attrs.pads_end = {1, 1};
  const Tensor w = small_weights(DType::f16, {16, 8, 3, 3});
  const std::vector<int64_t> symbols = {3};
  Problem problem = convolution_problem(attrs, operand(DType::f16, {3, 8, 5, 5}, Layout::channels_last), w);
  const Expr batch = Expr::symbol(0);
  problem.inputs[0] = symbolic_operand(DType::f16, {batch, 8, 5, 5}, symbols, Layout::channels_last);
  problem.outputs[0] = symbolic_operand(DType::f16, {batch, 16, 5, 5}, symbols, Layout::channels_last);
  CheckOptions options;
  options.symbols = symbols;
  check_first(problem, options);
}

// Pixels with room for a fourth channel, which holds anything.
TEST(CudaConv, PaddedPixels) {
  ConvolutionAttrs attrs;
  attrs.pads_begin = attrs.pads_end = {3, 3}, attrs.stride = {2, 2};
  for (DType type : {DType::f16, DType::f32}) {
    const Tensor w = small_weights(type, {24, 3, 7, 7});
    Problem problem = convolution_problem(attrs, operand(type, {2, 3, 15, 13}, Layout::channels_last), w);
    problem.inputs[0] = strided_operand(type, {2, 3, 15, 13}, {15 * 13 * 4, 1, 13 * 4, 4});
    check_first(problem);
  }
}

TEST(CudaConv, StatesWhyItRefuses) {
  const Tensor w = small_weights(DType::f16, {16, 8, 3, 3});
  Problem problem = convolution_problem({}, operand(DType::f16, {3, 8, 5, 5}, Layout::channels_last), w);
  problem.inputs[1].constant = problem.inputs[1].weights = nullptr;
  EXPECT_EQ(refusal_of(conv_tactic(), problem).value_or(""), "the weights are not constant");
}

}  // namespace
}  // namespace lathe::cuda
