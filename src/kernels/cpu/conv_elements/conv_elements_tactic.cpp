// SPDX-License-Identifier: Apache-2.0
// Convolutions, transposed or not, that the kernels with packed weights do not take: kernel "conv_elements".
#include <algorithm>

#include "base/divide.h"
#include "kernels/cpu/contraction/contraction.h"
#include "kernels/cpu/conv_elements/conv_elements.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/padding_rule_tactic.h"
#include "ops/windows.h"

namespace lathe::cpu {
namespace {

template <class Attrs>
ConvElementsParams params_of(const Attrs& attrs, size_t spatial) {
  ConvElementsParams params;
  params.groups = attrs.groups;
  for (size_t i = 0; i < spatial; ++i)
    params.axes.push_back({value_at(attrs.stride, i, 1), value_at(attrs.dilation, i, 1), rule_of(attrs.padding_mode),
                           value_at(attrs.pads_begin, i, 0)});
  return params;
}

ConvElementsParams params_of(const Problem& problem) {
  const auto spatial = static_cast<size_t>(problem.inputs[0].rank()) - 2;
  ConvElementsParams params;
  if (problem.is(OpKind::convolution)) {
    params = params_of(problem.attrs<ConvolutionAttrs>(), spatial);
    for (ConvElementsParams::Axis& axis : params.axes)
      if (axis.rule != PaddingRule::given) axis.padding = 0;
    return params;
  }
  const auto& attrs = problem.attrs<DeconvolutionAttrs>();
  params = params_of(attrs, spatial);
  params.transposed = true;
  for (size_t i = 0; i < spatial; ++i) {
    ConvElementsParams::Axis& axis = params.axes[i];
    // Where the output's extents are stated, the odd pixel is at the end for same_upper alone.
    if (!attrs.output_shape.empty() && axis.rule == PaddingRule::given) axis.rule = PaddingRule::upper_half;
    if (axis.rule != PaddingRule::given) axis.padding = value_at(attrs.output_padding, i, 0);
  }
  return params;
}

// A bias of what programs, which compute in f32, cannot add: operand 0.
bool is_bias(const Problem& problem) {
  const Program& program = problem.program;
  if (problem.operands.size() != 1 || program.code.size() != 1 || program.num_inputs != 2 ||
      program.code[0].op != Opcode::add || program.outputs != std::vector<uint16_t>{2})
    return false;
  const auto& added = program.code[0].operands;
  const Operand& bias = problem.operands[0];
  for (size_t d = 0; d < bias.dims.size(); ++d)
    if (d != 1 && bias.dims[d] != Expr(1) && bias.strides[d] != Expr(0)) return false;
  return added[0] + added[1] == 1 && bias.dtype == problem.outputs[0].dtype &&
         bias.dims.size() == problem.outputs[0].dims.size();
}

// Each group has tiles of its own; where each channel is a group, channels are gathered in their place. Weights,
// patches and results are put in order element by element.
Effort effort_of(const Problem& problem, int64_t groups) {
  constexpr double kElementClocks = 4;
  const int64_t outputs = std::max<int64_t>(problem.outputs[0].opt_dims[1] / groups, 1);
  if (outputs == 1 && problem.inputs[0].opt_dims[1] == groups)
    return {.vectors = 20, .passes = 2, .elements = kElementClocks};
  const auto each = static_cast<double>(outputs),
             columns = static_cast<double>(round_up(outputs, contraction::kColumns));
  return {.vectors = 2 * columns / each,
          .clocks = kElementClocks / each,  // a patch serves all outputs of a group
          .passes = 2,
          .elements = kElementClocks};
}

}  // namespace

Matched match_conv_elements(const Problem& problem) {
  if (!problem.is(OpKind::convolution) && !problem.is(OpKind::deconvolution)) return refuse("not a convolution");
  if (auto reason = unsupported_feature(problem, {.mixed_factors = true})) return refuse(*std::move(reason));
  const DType type = problem.outputs[0].dtype;
  if (!contraction::is_supported(problem.inputs[0].dtype, problem.inputs[1].dtype, type))
    return refuse(fmt::format("it makes {} of {}", name_of(type), name_of(problem.inputs[0].dtype)));
  if (problem.inputs[0].rank() > kMaxRank) return refuse("more dimensions than kernels have");
  const bool computes_epilogue = !problem.program.is_identity() && type == DType::f32;
  if (computes_epilogue) {
    if (auto reason = refuse_non_f32(problem)) return refuse(*std::move(reason));
  } else if (!problem.program.is_identity() && !is_bias(problem)) {
    return refuse(fmt::format("this kernel has no epilogue of {} but a bias", name_of(type)));
  }
  const ConvElementsParams params = params_of(problem);
  Emission emission = emission_of(problem, params, {0, 1});
  emission.with_program = computes_epilogue;
  const double packing = problem.target.launch_us;  // which is a fork of its own
  return match_one(std::move(emission), packing + predicted_us(problem, effort_of(problem, params.groups)));
}

}  // namespace lathe::cpu
