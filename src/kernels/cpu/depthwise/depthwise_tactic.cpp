// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution: kernel "depthwise".
#include "kernels/cpu/choices_tactic.h"
#include "kernels/cpu/conv/conv_problem_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/depthwise/depthwise.h"

namespace lathe::cpu {
namespace {

using depthwise::DepthwiseConfig;

Result<Emission> emit(const Problem& problem, const depthwise::Shape& shape, const DepthwiseConfig& config) {
  return emission_with_weights(
      problem, depthwise::DepthwiseParams{shape, config}, depthwise::packed_floats(shape),
      [&](const float* weights, std::span<float> packed) { depthwise::pack_weights(shape, weights, packed); });
}

Matched match_depthwise(const Problem& problem) {
  if (!problem.is(OpKind::convolution)) return refuse("not a convolution");
  if (auto reason = unsupported_feature(problem, {})) return refuse(*std::move(reason));
  if (auto reason = refuse_non_f32(problem)) return refuse(*std::move(reason));
  const auto conv = conv_shape(problem);
  if (!conv) return refuse(conv.error().reason);
  const Operand& w = problem.inputs[1];
  if (conv->groups == 1 || w.dims[0] != Expr(conv->groups) || w.dims[1] != Expr(1))
    return refuse("not one filter per channel");
  if (auto reason = refuse_layout(problem.inputs[0], "the input")) return refuse(*std::move(reason));
  if (auto reason = refuse_layout(problem.outputs[0], "the output")) return refuse(*std::move(reason));
  const depthwise::Shape shape{conv->spatial,  conv->groups, conv->kernel,      conv->stride,
                               conv->dilation, conv->pad,    conv->padding_rule};
  const auto list = [&problem, shape] {
    return depthwise::candidates(shape, problem.outputs[0].opt_dims.back(), problem.target.cores);
  };
  const auto text = [](const DepthwiseConfig& config) {
    return fmt::format("{} pixels split={}", config.pixels, config.split_channels ? "channels" : "pixels");
  };
  return match_choices(problem, list, text,
                       [&problem, shape](const DepthwiseConfig& config) { return emit(problem, shape, config); },
                       {.vectors = 2.5});
}

}  // namespace

const Tactic& depthwise_tactic() {
  static const FunctionTactic tactic("depthwise", match_depthwise);
  return tactic;
}

}  // namespace lathe::cpu
