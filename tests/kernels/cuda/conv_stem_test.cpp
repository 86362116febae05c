// SPDX-License-Identifier: Apache-2.0
// What conv_stem refuses; tests/kernels/conv_stem.graph has what it computes.
#include <gtest/gtest.h>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/kernel_check.h"

namespace lathe::cuda {

const Tactic& conv_stem_tactic();

namespace {

std::string refusal(const ConvolutionAttrs& attrs, const Dims& x, const Dims& w, DType type = DType::f16) {
  const Tensor weights = small_weights(type, w);
  return refusal_of(conv_stem_tactic(), convolution_problem(attrs, operand(type, x), weights)).value_or("");
}

TEST(CudaConvStem, RefusesWhatItsTilesDoNotHold) {
  ConvolutionAttrs attrs;
  EXPECT_EQ(refusal(attrs, {1, 4, 9, 9}, {8, 4, 3, 3}), "");
  EXPECT_EQ(refusal(attrs, {1, 5, 9, 9}, {8, 5, 3, 3}), "5 channels of 1 groups, of one 4 at most are handled");
  EXPECT_EQ(refusal(attrs, {1, 3, 40, 40}, {8, 3, 20, 20}), "a window of 1200 elements");
  EXPECT_EQ(refusal(attrs, {1, 3, 5, 5, 5}, {8, 3, 2, 2, 2}), "windows of three dimensions");
  EXPECT_EQ(refusal(attrs, {1, 3, 9, 9}, {8, 3, 3, 3}, DType::f32), "weights of type f32");
  attrs.stride = {40, 40};
  EXPECT_EQ(refusal(attrs, {1, 3, 99, 99}, {8, 3, 3, 3}), "windows too far apart");
  attrs.stride = {1, 1};
  attrs.groups = 2;
  EXPECT_EQ(refusal(attrs, {1, 4, 9, 9}, {8, 2, 3, 3}), "2 channels of 2 groups, of one 4 at most are handled");
}

// On a device of one multiprocessor, whose blocks have several tiles each.
TEST(CudaConvStem, BlocksTakeTilesInTurns) {
  ConvolutionAttrs attrs;
  attrs.pads_begin = attrs.pads_end = {1, 1};
  const Tensor weights = small_weights(DType::f16, {40, 3, 3, 3});
  Problem problem = convolution_problem(attrs, operand(DType::f16, {2, 3, 20, 40}), weights);
  problem.target.cores = problem.target.least_cores = 1;
  CheckOptions options;
  options.inputs = {small_weights(DType::f16, {2, 3, 20, 40}), weights};  // sums that are exact
  int found = 0;
  for (const Config& config : configs_of(conv_stem_tactic(), problem)) {
    // Whose pixels are fetched beside the sums, and behind them.
    if (config.text != "8x16 pixels warp=32x64" && config.text != "16x16 pixels warp=64x64") continue;
    ++found;
    const Result<> result = check_kernel(test_backend(), conv_stem_tactic(), problem, config, options);
    EXPECT_TRUE(result) << config.text << ": " << result.error().to_string();
  }
  EXPECT_EQ(found, 2);
}

TEST(CudaConvStem, WritesChannelsLastAlone) {
  const ConvolutionAttrs attrs;
  const Tensor weights = small_weights(DType::f16, {8, 3, 3, 3});
  Problem problem = convolution_problem(attrs, operand(DType::f16, {1, 3, 9, 9}), weights);
  problem.outputs[0] = operand(DType::f16, problem.outputs[0].opt_dims);
  EXPECT_EQ(refusal_of(conv_stem_tactic(), problem), "channels are not side by side in the result");
}

}  // namespace
}  // namespace lathe::cuda
