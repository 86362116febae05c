// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/libraries/convolution_stages_tactic.h"

#include <limits>

#include "kernels/cuda/libraries/staging_tactic.h"
#include "kernels/cuda/match.h"

namespace lathe::cuda {
namespace {

constexpr float kNoLimit = std::numeric_limits<float>::infinity();

std::optional<ConvolutionStage> activation(const Instruction& each) {
  const float x = each.immediates[0], y = each.immediates[1];
  switch (each.op) {
    case Opcode::relu:
      return ConvolutionStage{CUDNN_POINTWISE_RELU_FWD, {}, 0, kNoLimit};
    case Opcode::leaky_relu:
      return ConvolutionStage{CUDNN_POINTWISE_RELU_FWD, {}, x, kNoLimit};
    case Opcode::clip:
      if (x != 0 || !(y > 0)) return std::nullopt;
      return ConvolutionStage{CUDNN_POINTWISE_RELU_FWD, {}, 0, y};
    case Opcode::elu:
      return ConvolutionStage{CUDNN_POINTWISE_ELU_FWD, {}, x, 0};
    case Opcode::tanh:
      return ConvolutionStage{CUDNN_POINTWISE_TANH_FWD, {}, 0, 0};
    case Opcode::sigmoid:
      return ConvolutionStage{CUDNN_POINTWISE_SIGMOID_FWD, {}, 0, 0};
    case Opcode::silu:
      return ConvolutionStage{CUDNN_POINTWISE_SWISH_FWD, {}, 0, 0};
    case Opcode::gelu_erf:
      return ConvolutionStage{CUDNN_POINTWISE_GELU_FWD, {}, 0, 0};
    case Opcode::gelu_tanh:
      return ConvolutionStage{CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, {}, 0, 0};
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::vector<ConvolutionStage>> stages_of(const Problem& problem) {
  if (problem.program.code.size() > convolution::kMaxStages) return std::nullopt;
  const auto chain = chain_of(problem, 1);  // the channels
  if (!chain) return std::nullopt;
  std::vector<ConvolutionStage> stages;
  for (const ChainLink& link : *chain) {
    std::optional<ConvolutionStage> stage = activation(*link.instruction);
    if (link.operand) {
      const DType dtype = problem.operands[*link.operand].dtype;
      if (!is_short_float(dtype)) return std::nullopt;
      const bool adds = link.instruction->op == Opcode::add;
      stage = {adds ? CUDNN_POINTWISE_ADD : CUDNN_POINTWISE_MUL, link.operand, 0, 0};
    }
    if (!stage) return std::nullopt;
    stages.push_back(*stage);
  }
  return stages;
}

}  // namespace lathe::cuda
