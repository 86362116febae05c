// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/gemm/tile_tactic.h"

namespace lathe::cuda {

const Tactic& deconv_tactic();

namespace {

void check(const Problem& problem, const Config& config) {
  const Result<> result = check_kernel(test_backend(), deconv_tactic(), problem, config, {});
  EXPECT_TRUE(result) << config.text << ", " << to_text(problem) << ": " << result.error().to_string();
}

void check_first(const Problem& problem) {
  const std::optional<std::string> refusal = refusal_of(deconv_tactic(), problem);
  ASSERT_FALSE(refusal) << *refusal;
  check(problem, configs_of(deconv_tactic(), problem).front());
}

TEST(CudaDeconv, OneAndThreeDimensionsGroupsAndPlanarInput) {
  DeconvolutionAttrs attrs;
  attrs.stride = {2}, attrs.groups = 2;
  const Tensor line = small_weights(DType::f16, {16, 8, 5});
  check_first(deconvolution_problem(attrs, operand(DType::f16, {2, 16, 9}, Layout::channels_last), line));
  attrs.groups = 1, attrs.stride = {2, 1, 2};
  const Tensor cube = small_weights(DType::f32, {4, 8, 2, 3, 2});
  check_first(deconvolution_problem(attrs, operand(DType::f32, {1, 4, 3, 4, 2}, Layout::channels_last), cube));
  attrs.stride = {2, 2};
  const Tensor odd = small_weights(DType::f16, {3, 8, 3, 3});
  check_first(deconvolution_problem(attrs, operand(DType::f16, {1, 3, 4, 6}), odd));
}

TEST(CudaDeconv, ProgramRunsOnTheSumsOfSplits) {
  DeconvolutionAttrs attrs;
  attrs.stride = {2, 2};
  const Tensor w = small_weights(DType::f16, {256, 24, 3, 3});
  Problem problem = deconvolution_problem(attrs, operand(DType::f16, {1, 256, 3, 3}, Layout::channels_last), w);
  const Dims dims = problem.outputs[0].opt_dims;
  problem.operands = {strided_operand(DType::f16, dims, {0, 1, 0, 0}),
                      operand(DType::f16, dims, Layout::channels_last)};
  problem.program = *parse_program("in=3; r3=add r0 r1; r4=relu r3; r5=add r4 r2; out r5");
  bool found = false;
  for (const Config& config : configs_of(deconv_tactic(), problem))
    if (config.as<gemm::TileShape>().splits > 1 && !std::exchange(found, true)) check(problem, config);
  EXPECT_TRUE(found);
}

TEST(CudaDeconv, StatesWhyItRefuses) {
  DeconvolutionAttrs attrs;
  attrs.stride = {9, 9};
  const Tensor w = small_weights(DType::f16, {8, 8, 9, 9});
  const Problem problem = deconvolution_problem(attrs, operand(DType::f16, {1, 8, 2, 2}, Layout::channels_last), w);
  EXPECT_EQ(refusal_of(deconv_tactic(), problem).value_or(""), "a stride of more than 64 phases");
}

}  // namespace
}  // namespace lathe::cuda
