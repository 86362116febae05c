// SPDX-License-Identifier: Apache-2.0
// Transposed convolution, phase by phase: kernel "deconv".
#include <algorithm>
#include <numeric>

#include "base/divide.h"
#include "kernels/conv_shape_tactic.h"
#include "kernels/cpu/conv/conv_cost_tactic.h"
#include "kernels/cpu/conv/conv_problem_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/deconv/deconv.h"
#include "kernels/match_tactic.h"

namespace lathe::cpu {
namespace {

Result<Emission> emit(const Problem& problem, const ConvShape& shape, const Config& choice) {
  const auto& blocking = choice.as<gemm::Blocking>();
  return emission_with_weights(
      problem, deconv::DeconvParams{shape, blocking}, deconv::packed_floats(shape, blocking),
      [&](const float* weights, std::span<float> packed) { deconv::pack_weights(shape, blocking, weights, packed); });
}

std::string text_of(const gemm::Blocking& blocking) {
  return fmt::format("{}x{} split={}", blocking.rows, blocking.width, blocking.split_columns ? "columns" : "rows");
}

// The phases are convolutions, one after the other.
double predicted_us(const Problem& problem, const ConvShape& shape, const gemm::Blocking& blocking) {
  const conv::ConvProblem whole = conv_problem(problem, shape);
  double us = problem.inputs[1].constant ? 0 : packing_us(problem);
  for (int64_t i = 0; i < deconv::phase_count(shape); ++i) {
    const deconv::DeconvPhase phase = deconv::phase_of(shape, i);
    conv::ConvProblem part{.shape = phase.shape, .batch = whole.batch, .in = whole.in};
    for (size_t d = 0; d < 3; ++d)
      part.out[d] = ceil_div(std::max<int64_t>(whole.out[d] - phase.offset[d], 0), shape.stride[d]);
    us += conv::predicted_us(problem.target, part, {conv::Algorithm::direct, blocking, false});
  }
  return us;
}

std::vector<Config> configs(const Problem& problem, const ConvShape& shape) {
  const Dims& x = problem.inputs[0].opt_dims;
  const int64_t rows = std::accumulate(x.begin() + 2, x.end(), x[0], std::multiplies<>());
  return configs_of(deconv::candidates(shape, rows, problem.target.cores), text_of,
                    [&](const gemm::Blocking& blocking) { return predicted_us(problem, shape, blocking); });
}

}  // namespace

Matched match_deconv(const Problem& problem) {
  if (!problem.is(OpKind::deconvolution)) return refuse("not a transposed convolution");
  if (auto reason = unsupported_feature(problem, {})) return refuse(*std::move(reason));
  if (auto reason = refuse_non_f32(problem)) return refuse(*std::move(reason));
  const Operand& x = problem.inputs[0];
  const Operand& w = problem.inputs[1];
  if (!std::all_of(w.dims.begin(), w.dims.end(), [](const Expr& dim) { return dim.is_constant(); }))
    return refuse("the extents of the weights are not known while building");
  if (!w.constant && problem.attrs<DeconvolutionAttrs>().groups != 1) return refuse("computed weights of groups");
  if (auto reason = refuse_layout(x, "the input")) return refuse(*std::move(reason));
  if (auto reason = refuse_layout(problem.outputs[0], "the output")) return refuse(*std::move(reason));
  ConvShape shape;
  if (auto reason = resolve_deconv_shape(problem, shape)) return refuse(*std::move(reason));
  if (deconv::phase_count(shape) > 64) return refuse("a stride of more than 64 phases");
  return match_form(problem, shape, configs, emit);
}

}  // namespace lathe::cpu
