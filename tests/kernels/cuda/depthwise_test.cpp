// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"

namespace lathe::cuda {

const Tactic& depthwise_tactic();

namespace {

// With strips of two lengths.
void check(const Problem& problem) {
  const std::optional<std::string> refusal = depthwise_tactic().refuse(problem);
  ASSERT_FALSE(refusal) << *refusal;
  const std::vector<Config> configs = depthwise_tactic().configs(problem);
  for (size_t i = 0; i < std::min<size_t>(configs.size(), 2); ++i) {
    const Result<> result = check_kernel(test_backend(), depthwise_tactic(), problem, configs[i], {});
    EXPECT_TRUE(result) << configs[i].text << ", " << to_text(problem) << ": " << result.error().to_string();
  }
}

TEST(CudaDepthwise, ConvolvesEveryType) {
  ConvolutionAttrs attrs;
  attrs.groups = 16;
  attrs.pads_begin = attrs.pads_end = {1, 1};
  for (DType type : {DType::f16, DType::bf16, DType::f32, DType::i8}) {
    const Tensor w = small_weights(type, {16, 1, 3, 3});
    check(convolution_problem(attrs, operand(type, {2, 16, 7, 9}, Layout::channels_last), w));
  }
}

TEST(CudaDepthwise, StridesDilationsAndUnequalPads) {
  ConvolutionAttrs attrs;
  attrs.groups = 12;  // not whole vectors
  attrs.stride = {1, 2}, attrs.dilation = {2, 3}, attrs.pads_begin = {0, 3}, attrs.pads_end = {2, 1};
  const Tensor w = small_weights(DType::f16, {12, 1, 2, 3});
  check(convolution_problem(attrs, operand(DType::f16, {1, 12, 9, 13}, Layout::channels_last), w));
}

TEST(CudaDepthwise, LongRowsOneAndThreeDimensions) {
  ConvolutionAttrs attrs;
  attrs.groups = 8;
  attrs.pads_begin = {7}, attrs.pads_end = {6};
  const Tensor line = small_weights(DType::f32, {8, 1, 13});
  check(convolution_problem(attrs, operand(DType::f32, {2, 8, 11}, Layout::channels_last), line));
  attrs.pads_begin = {1, 0, 1}, attrs.pads_end = {0, 1, 1};
  const Tensor cube = small_weights(DType::f16, {8, 1, 3, 2, 2});
  check(convolution_problem(attrs, operand(DType::f16, {2, 8, 4, 5, 6}, Layout::channels_last), cube));
}

TEST(CudaDepthwise, ProgramRunsOnTheSums) {
  ConvolutionAttrs attrs;
  attrs.groups = 24;
  attrs.pads_begin = attrs.pads_end = {1, 1};
  const Tensor w = small_weights(DType::f16, {24, 1, 3, 3});
  Problem problem = convolution_problem(attrs, operand(DType::f16, {2, 24, 6, 5}, Layout::channels_last), w);
  problem.operands = {strided_operand(DType::f16, {2, 24, 6, 5}, {0, 1, 0, 0}),
                      operand(DType::f16, {2, 24, 6, 5}, Layout::channels_last)};
  problem.program = *parse_program("in=3; r3=add r0 r1; r4=hard_swish r3; r5=add r4 r2; out r5");
  check(problem);
}

TEST(CudaDepthwise, StatesWhyItRefuses) {
  const Tensor w = small_weights(DType::f16, {16, 2, 3, 3});
  ConvolutionAttrs attrs;
  attrs.groups = 8;
  const Problem grouped = convolution_problem(attrs, operand(DType::f16, {1, 16, 5, 5}, Layout::channels_last), w);
  EXPECT_NE(depthwise_tactic().refuse(grouped).value_or("").find("in each group"), std::string::npos);
  attrs.groups = 16;
  const Tensor single = small_weights(DType::f16, {16, 1, 3, 3});
  const Problem planar = convolution_problem(attrs, operand(DType::f16, {1, 16, 5, 5}), single);
  EXPECT_EQ(depthwise_tactic().refuse(planar).value_or(""), "channels are not side by side");
}

}  // namespace
}  // namespace lathe::cuda
