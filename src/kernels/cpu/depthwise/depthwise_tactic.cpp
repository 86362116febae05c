// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution: kernel "depthwise".
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/depthwise/depthwise_cost_tactic.h"
#include "kernels/match_tactic.h"
#include "tuning/work.h"

namespace lathe::cpu {
namespace {

using depthwise::DepthwiseConfig;

Result<Emission> emit(const Problem& problem, const depthwise::Shape& shape, const Config& choice) {
  const auto& config = choice.as<DepthwiseConfig>();
  return emission_with_weights(
      problem, depthwise::DepthwiseParams{shape, config}, depthwise::packed_floats(shape),
      [&](const float* weights, std::span<float> packed) { depthwise::pack_weights(shape, weights, packed); },
      [&] {
        const int64_t taps = shape.volume(), floats = depthwise::packed_floats(shape);
        return Packing{{floats}, {{0, 0, {taps, shape.channels}, {1, taps}, {floats / taps, 1}}}};
      });
}

std::vector<Config> configs(const Problem& problem, const depthwise::Shape& shape) {
  const double packing = problem.inputs[1].weights ? 0 : packing_us(problem);
  return configs_of(
      depthwise::candidates(problem.target.cores), depthwise::to_text,
      [&](const DepthwiseConfig& config) { return packing + depthwise::predicted_us(problem, shape, config, 1); });
}

}  // namespace

Matched match_depthwise(const Problem& problem) {
  if (!problem.is(OpKind::convolution)) return refuse("not a convolution");
  if (auto reason = unsupported_feature(problem, {})) return refuse(*std::move(reason));
  if (auto reason = refuse_non_f32(problem)) return refuse(*std::move(reason));
  const auto shape = depthwise::shape_of(problem);
  if (!shape) return refuse(shape.error());
  return match_form(problem, *shape, configs, emit);
}

}  // namespace lathe::cpu
