// SPDX-License-Identifier: Apache-2.0
// Transposed convolution, phase by phase: kernel "deconv".
#include <algorithm>

#include "kernels/conv_shape_tactic.h"
#include "kernels/cpu/choices_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/deconv/deconv.h"

namespace lathe::cpu {
namespace {

Result<Emission> emit(const Problem& problem, const ConvShape& shape, const gemm::Blocking& blocking) {
  return emission_with_weights(
      problem, deconv::DeconvParams{shape, blocking}, deconv::packed_floats(shape, blocking),
      [&](const float* weights, std::span<float> packed) { deconv::pack_weights(shape, blocking, weights, packed); });
}

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
  if (auto reason = read_deconv_shape(problem, shape)) return refuse(*std::move(reason));
  if (deconv::phase_count(shape) > 64) return refuse("a stride of more than 64 phases");
  int64_t rows = 1;
  for (size_t d = 0; d < x.opt_dims.size(); ++d)
    if (d != 1) rows *= x.opt_dims[d];
  const auto text = [](const gemm::Blocking& blocking) {
    return fmt::format("{}x{} split={}", blocking.rows, blocking.width, blocking.split_columns ? "columns" : "rows");
  };
  return match_choices(
      problem, [&problem, shape, rows] { return deconv::candidates(shape, rows, problem.target.cores); }, text,
      [&problem, shape](const gemm::Blocking& blocking) { return emit(problem, shape, blocking); },
      {.vectors = gemm::padding_of(shape.group_outputs())});
}

}  // namespace

const Tactic& deconv_tactic() {
  static const FunctionTactic tactic("deconv", match_deconv);
  return tactic;
}

}  // namespace lathe::cpu
