// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"

namespace lathe::cuda {

const Tactic& depthwise_tactic();

namespace {

TEST(CudaDepthwise, StatesWhyItRefuses) {
  const Tensor w = small_weights(DType::f16, {16, 2, 3, 3});
  ConvolutionAttrs attrs;
  attrs.groups = 8;
  const Problem grouped = convolution_problem(attrs, operand(DType::f16, {1, 16, 5, 5}, Layout::channels_last), w);
  EXPECT_NE(refusal_of(depthwise_tactic(), grouped).value_or("").find("in each group"), std::string::npos);
  attrs.groups = 16;
  const Tensor single = small_weights(DType::f16, {16, 1, 3, 3});
  const Problem planar = convolution_problem(attrs, operand(DType::f16, {1, 16, 5, 5}), single);
  EXPECT_EQ(refusal_of(depthwise_tactic(), planar).value_or(""), "channels are not side by side");
}

}  // namespace
}  // namespace lathe::cuda
