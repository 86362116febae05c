// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/libraries/convolution_stages_tactic.h"

#include <cmath>
#include <limits>

#include "kernels/cuda/source.h"

namespace lathe::cuda {
namespace {

constexpr float kNoLimit = std::numeric_limits<float>::infinity();

// One number for each channel. Only constants surely lie apart from the result.
bool is_per_channel(const Operand& given, const Operand& output) {
  const Operand operand = broadcast(given, output);
  for (size_t d = 0; d < output.dims.size(); ++d)
    if (d != 1 && operand.strides[d] != Expr(0) && output.dims[d] != Expr(1)) return false;
  const bool known = given.dtype == DType::f32 || given.dtype == DType::f16 || given.dtype == DType::bf16;
  return known && given.constant && (operand.strides[1] == Expr(1) || output.dims[1] == Expr(1));
}

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
  const Program& program = problem.program;
  std::vector<ConvolutionStage> stages;
  if (program.outputs.empty()) return stages;
  if (program.code.size() > convolution::kMaxStages) return std::nullopt;
  uint16_t value = 0;  // each instruction takes what the one before it gave
  for (size_t i = 0; i < program.code.size(); ++i) {
    const Instruction& each = program.code[i];
    const uint16_t first = each.operands[0], second = each.operands[1];
    std::optional<ConvolutionStage> stage;
    if ((each.op == Opcode::add || each.op == Opcode::mul) && (first == value) != (second == value)) {
      const uint16_t other = first == value ? second : first;
      if (other == 0 || other >= program.num_inputs) return std::nullopt;
      if (!is_per_channel(problem.operands[other - 1u], problem.outputs[0])) return std::nullopt;
      stage = {each.op == Opcode::add ? CUDNN_POINTWISE_ADD : CUDNN_POINTWISE_MUL, other - 1u, 0, 0};
    } else if (first == value) {
      stage = activation(each);
    }
    if (!stage) return std::nullopt;
    stages.push_back(*stage);
    value = static_cast<uint16_t>(program.num_inputs + i);
  }
  if (program.outputs[0] != value) return std::nullopt;
  return stages;
}

}  // namespace lathe::cuda
