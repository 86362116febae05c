// SPDX-License-Identifier: Apache-2.0
// Windows of several elements that the copy engine brings to blocks that stay.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/divide.h"
#include "fixtures/ask_tactic.h"
#include "fixtures/test_tensor.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/gemm/tile_tactic.h"

namespace lathe::cuda {

const Tactic& conv_tactic();

namespace {

// Tiles of the pipeline, with so many splits of K at the most, of a product so large that no tile is left out.
std::vector<Config> pipelines(DType type, DType output, int64_t most_splits) {
  gemm::Extent extent;
  extent.dtype = type, extent.output = output;
  extent.target = test_target();
  extent.copied = extent.weights_first = true, extent.neighbours = is_integer(type) ? 16 : 8;
  extent.m = 306, extent.n = 192, extent.k = 1152;
  std::vector<Config> found;
  for (const Config& config : gemm::every_config(extent)) {
    const auto& tile = config.as<gemm::TileShape>();
    if (tile.unit == gemm::TileShape::pipeline && tile.splits <= most_splits) found.push_back(config);
  }
  return found;
}

struct Case {
  Dims x, w;
  ConvolutionAttrs attrs;
};

// By a few blocks, which take several tiles.
void check(DType type, const Case& c, const Config& config) {
  const bool integers = type == DType::i8;
  const Tensor weights = integers ? any_levels(c.w, 5) : random_tensor(type, c.w, 5);
  Problem problem = convolution_problem(c.attrs, operand(type, c.x, Layout::channels_last), weights);
  problem.target.cores = 3;
  Dims y = problem.outputs[0].opt_dims;
  if (c.attrs.padding_mode != PaddingMode::explicit_round_down)
    for (size_t d = 2; d < y.size(); ++d) y[d] = ceil_div(c.x[d], c.attrs.stride[d - 2]);
  problem.outputs[0] = operand(type, y, Layout::channels_last);
  Dims per_channel(y.size(), 0);
  per_channel[1] = 1;
  problem.operands = {strided_operand(DType::f32, y, per_channel)};
  problem.program = *parse_program(integers ? "in=2; r2=mul r0 r1; r3=constant 0.75; r4=div r2 r3; r5=round r4; "
                                              "r6=clip r5 -128 127; out r6"
                                            : "in=2; r2=add r0 r1; r3=relu r2; out r3");
  CheckOptions options;
  options.inputs = {integers ? any_levels(c.x, 6) : random_tensor(type, c.x, 6)};
  Dims scales(y.size(), 1);
  scales[1] = y[1];
  options.operands = {integers ? small_scales(scales) : Tensor()};
  const Result<> result = check_kernel(test_backend(), conv_tactic(), problem, config, options);
  EXPECT_TRUE(result) << config.text << ", " << to_text(problem) << ": " << result.error().to_string();
}

ConvolutionAttrs padded(Ints begin, Ints end, Ints stride = {}, Ints dilation = {}) {
  ConvolutionAttrs attrs;
  attrs.pads_begin = std::move(begin), attrs.pads_end = std::move(end);
  attrs.stride = std::move(stride), attrs.dilation = std::move(dilation);
  return attrs;
}

ConvolutionAttrs same(PaddingMode mode) {
  ConvolutionAttrs attrs = padded({}, {}, {2, 2});
  attrs.padding_mode = mode;
  return attrs;
}

// Tiles end within rows of pixels, and go on in the next image.
TEST(CudaConvWindows, AreBroughtForEveryTile) {
  for (const DType type : {DType::i8, DType::f16}) {
    const Case c{{3, 80, 9, 11}, {192, 80, 3, 3}, padded({1, 1}, {1, 1})};
    std::set<std::pair<int64_t, int64_t>> tiles;
    for (const Config& config : pipelines(type, type, 1)) {
      const auto& tile = config.as<gemm::TileShape>();
      if (!tiles.insert({tile.m * (tile.turns ? -1 : 1), tile.n}).second) continue;
      check(type, c, config);
    }
    EXPECT_GE(tiles.size(), 10u);
  }
}

// Channels of one panel, of a part of it, and of several; windows that begin and end outside of the image, at one side
// alone, too; steps and distances of their own along each dimension; images of one dimension.
TEST(CudaConvWindows, OfAnyForm) {
  const std::vector<Case> cases = {
      {{2, 16, 8, 7}, {64, 16, 3, 3}, padded({0, 0}, {0, 0})},
      {{2, 144, 8, 7}, {64, 144, 3, 3}, padded({1, 1}, {1, 1}, {2, 2})},
      {{2, 128, 9, 6}, {64, 128, 3, 3}, padded({1, 0}, {0, 2}, {1, 2})},
      {{1, 64, 13, 12}, {64, 64, 3, 5}, padded({3, 4}, {2, 1}, {2, 1}, {3, 2})},
      {{2, 64, 7, 9}, {64, 64, 2, 4}, padded({0, 0}, {1, 3})},
      {{2, 64, 11, 10}, {64, 64, 1, 1}, padded({0, 0}, {0, 0}, {2, 3})},
      {{2, 64, 11, 10}, {64, 64, 1, 1}, padded({0, 0}, {2, 1})},
      {{3, 48, 21}, {64, 48, 5}, padded({2}, {1}, {2}, {2})},
      {{2, 64, 8, 7}, {64, 64, 3, 2}, same(PaddingMode::same_upper)},
      {{2, 64, 8, 7}, {64, 64, 2, 3}, same(PaddingMode::same_lower)},
  };
  for (const DType type : {DType::i8, DType::f16, DType::bf16})
    for (const Case& c : cases) {
      size_t count = 0;
      for (const Config& config : pipelines(type, type, 1)) {
        const auto& tile = config.as<gemm::TileShape>();
        if (tile.m == 64 && tile.n == 64) check(type, c, config), ++count;
      }
      EXPECT_GT(count, 0u);
    }
}

// Numbers of one sign, of which cutting off what TF32 does not hold would make all sums too small.
TEST(CudaConvWindows, RoundFloatsToTf32) {
  const auto numbers = [](Dims dims, uint32_t seed) {
    Tensor tensor = random_tensor(DType::f32, dims, seed);
    for (int64_t i = 0; i < tensor.volume(); ++i) {
      float& x = tensor.mutable_as<float>()[i];
      x = 0.5f + 0.5f * std::fabs(x) / (1 + std::fabs(x));
    }
    return tensor;
  };
  const Tensor weights = numbers({64, 64, 3, 3}, 1);
  Problem problem =
      convolution_problem(padded({1, 1}, {1, 1}), operand(DType::f32, {1, 64, 7, 9}, Layout::channels_last), weights);
  problem.tf32 = true;
  problem.outputs[0] = operand(DType::f32, problem.outputs[0].opt_dims, Layout::channels_last);
  CheckOptions options;
  options.inputs = {numbers({1, 64, 7, 9}, 2)};
  options.tolerance = 1e-4;
  size_t count = 0;
  for (const Config& config : pipelines(DType::f32, DType::f32, 1)) {
    const auto& tile = config.as<gemm::TileShape>();
    if (tile.m != 64 || tile.n != 64) continue;
    const Result<> result = check_kernel(test_backend(), conv_tactic(), problem, config, options);
    EXPECT_TRUE(result) << config.text << ": " << result.error().to_string();
    ++count;
  }
  EXPECT_GT(count, 0u);
}

// Splits begin at any element of the window.
TEST(CudaConvWindows, OfSplits) {
  size_t splits = 0;
  for (const Config& config : pipelines(DType::f16, DType::f16, 4)) {
    const auto& tile = config.as<gemm::TileShape>();
    if (tile.splits == 1 || tile.m != 64 || tile.n != 64) continue;
    ++splits;
    check(DType::f16, {{1, 128, 7, 7}, {64, 128, 3, 3}, padded({1, 1}, {1, 1})}, config);
  }
  EXPECT_GE(splits, 2u);
}

bool are_offered(const ConvolutionAttrs& attrs, const Dims& x, const Dims& w, Layout layout = Layout::channels_last) {
  const Tensor weights = small_weights(DType::f16, w);
  const Problem problem = convolution_problem(attrs, operand(DType::f16, x, layout), weights);
  return std::ranges::any_of(configs_of(conv_tactic(), problem), [](const Config& config) {
    return config.as<gemm::TileShape>().unit == gemm::TileShape::pipeline;
  });
}

TEST(CudaConvWindows, AreRefusedWhereNoMapSaysThem) {
  const Dims x = {32, 64, 56, 56}, w = {128, 64, 3, 3};
  EXPECT_TRUE(are_offered(padded({1, 1}, {1, 1}), x, w));
  EXPECT_TRUE(are_offered(padded({0, 0}, {0, 0}, {8, 8}), x, w));
  EXPECT_FALSE(are_offered(padded({0, 0}, {0, 0}, {1, 9}), x, w));
  EXPECT_FALSE(are_offered(padded({129, 129}, {0, 0}), x, w));
  EXPECT_FALSE(are_offered(padded({1, 1}, {1, 1}), x, w, Layout::linear));
  EXPECT_FALSE(are_offered(padded({1, 1}, {1, 1}), {32, 60, 56, 56}, {128, 60, 3, 3}));
  EXPECT_FALSE(are_offered(padded({0, 0}, {0, 0}, {1, 1}, {64, 1}), {1, 64, 200, 56}, w));
  EXPECT_FALSE(are_offered(padded({0, 0, 0}, {0, 0, 0}), {8, 64, 9, 20, 20}, {128, 64, 3, 3, 3}));
  ConvolutionAttrs groups = padded({1, 1}, {1, 1});
  groups.groups = 2;
  EXPECT_FALSE(are_offered(groups, x, {128, 32, 3, 3}));
  ConvolutionAttrs rounds_up = padded({0, 0}, {0, 0}, {2, 2});
  rounds_up.padding_mode = PaddingMode::explicit_round_up;
  EXPECT_FALSE(are_offered(rounds_up, x, w));
}

}  // namespace
}  // namespace lathe::cuda
