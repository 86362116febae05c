// SPDX-License-Identifier: Apache-2.0
// A region's program as the stages of cudnn.convolution.
#pragma once

#include <optional>
#include <vector>

#include "device/cuda/convolution_call.h"
#include "tuning/problem.h"

namespace lathe::cuda {

struct ConvolutionStage {
  cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
  std::optional<size_t> operand;  // of the problem: a constant for each channel
  float first = 0, second = 0;    // what the mode asks for
};

// nullopt where the library has no such stages.
std::optional<std::vector<ConvolutionStage>> stages_of(const Problem& problem);

}  // namespace lathe::cuda
