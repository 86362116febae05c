// SPDX-License-Identifier: Apache-2.0
// Convolution by batch-reduce GEMM or Winograd: kernel "conv".
#include <algorithm>

#include "kernels/cpu/conv/conv_cost_tactic.h"
#include "kernels/cpu/conv/conv_problem_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/panels_packing_tactic.h"
#include "kernels/match_tactic.h"

namespace lathe::cpu {
namespace {

using conv::ConvConfig;

bool is_planar(const Operand& x) {
  return x.dims[1] != Expr(1) && x.strides[1] != Expr(1) && x.strides.back() == Expr(1);
}

std::string text_of(const ConvConfig& config) {
  static constexpr std::string_view kAlgorithms[] = {"direct", "planar", "winograd2", "winograd4"};
  return fmt::format("{} {}{}", kAlgorithms[static_cast<size_t>(config.algorithm)], to_text(config.blocking),
                     config.row_aligned ? " aligned" : "");
}

// What pack_weights() does.
Packing packing_of(const ConvShape& shape, const ConvConfig& config) {
  const int64_t inputs = shape.group_inputs(), taps = shape.volume();
  const gemm::Panels panels{inputs * taps, shape.group_outputs(), config.blocking.width};
  const bool by_taps = config.algorithm == conv::Algorithm::direct;
  const gemm::KAxis axes[] = {{inputs, taps, by_taps ? 1 : taps}, {taps, 1, by_taps ? inputs : 1}};
  Packing packing =
      gemm::panels_packing(panels, axes, panels.k).repeated(shape.groups, panels.n * panels.k, panels.floats());
  packing.dims = {panels.floats() * shape.groups};
  return packing;
}

Result<Emission> emit(const Problem& problem, const ConvShape& shape, const Config& choice) {
  const auto& config = choice.as<ConvConfig>();
  if (conv::is_winograd(config.algorithm))
    return emission_of(problem, encode_params(conv::ConvParams{shape, config, /*packed=*/false}), {0, 1});
  return emission_with_weights(
      problem, conv::ConvParams{shape, config}, conv::packed_floats(shape, config),
      [&](const float* weights, std::span<float> packed) { conv::pack_weights(shape, config, weights, packed); },
      [&] { return packing_of(shape, config); });
}

std::vector<Config> configs(const Problem& problem, const ConvShape& shape) {
  conv::ConvProblem p = conv_problem(problem, shape);
  p.planar_input = is_planar(problem.inputs[0]);
  std::vector<ConvConfig> choices = conv::candidates(p, problem.target.cores);
  if (!problem.inputs[1].constant)
    std::erase_if(choices, [](const ConvConfig& config) { return conv::is_winograd(config.algorithm); });
  const double packing = problem.inputs[1].weights ? 0 : packing_us(problem);
  return configs_of(choices, text_of,
                    [&](const ConvConfig& config) { return packing + conv::predicted_us(problem.target, p, config); });
}

}  // namespace

Matched match_conv(const Problem& problem) {
  if (!problem.is(OpKind::convolution)) return refuse("not a convolution");
  if (auto reason = unsupported_feature(problem, {})) return refuse(*std::move(reason));
  if (auto reason = refuse_non_f32(problem)) return refuse(*std::move(reason));
  const auto shape = conv_shape(problem);
  if (!shape) return refuse(shape.error().reason);
  if (auto reason = refuse_layout(problem.outputs[0], "the output")) return refuse(*std::move(reason));
  const bool planar = is_planar(problem.inputs[0]);
  if (planar && shape->groups != 1) return refuse("row-major input with groups");
  if (planar && shape->dilation[2] != 1) return refuse("row-major input with dilation");
  if (auto reason = planar ? std::nullopt : refuse_layout(problem.inputs[0], "the input"))
    return refuse(*std::move(reason));
  return match_form(problem, *shape, configs, emit);
}

}  // namespace lathe::cpu
