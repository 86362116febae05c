// SPDX-License-Identifier: Apache-2.0
// Transposed convolution, phase by phase: kernel "deconv".
#include <algorithm>

#include "kernels/cpu/choices_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/deconv/deconv.h"
#include "ops/windows.h"

namespace lathe::cpu {
namespace {

tl::expected<ConvShape, Refusal> shape_of(const Problem& problem) {
  const auto& attrs = problem.attrs<DeconvolutionAttrs>();
  const Operand &x = problem.inputs[0], &w = problem.inputs[1];
  if (x.rank() < 3 || x.rank() > 5)
    return refuse(fmt::format("{} spatial dimensions, 1 to 3 are handled", x.rank() - 2));
  ConvShape shape;
  shape.spatial = x.rank() - 2;
  shape.groups = attrs.groups;
  shape.in_channels = w.opt_dims[0];
  shape.out_channels = w.opt_dims[1] * attrs.groups;
  const size_t spatial = static_cast<size_t>(shape.spatial), lead = 3 - spatial;
  for (size_t i = 0; i < spatial; ++i) {
    const size_t d = lead + i;
    shape.kernel[d] = w.opt_dims[2 + i];
    shape.stride[d] = value_at(attrs.stride, i, 1);
    shape.dilation[d] = value_at(attrs.dilation, i, 1);
    shape.pad[d] = value_at(attrs.pads_begin, i, 0);
    if (attrs.padding_mode == PaddingMode::explicit_round_down && attrs.output_shape.empty()) continue;
    // The padding follows from the output's extent, as the op's rule says.
    const auto in = x.dims[2 + i].as_constant(), out = problem.outputs[0].dims[2 + i].as_constant();
    if (!in || !out) return refuse("the padding depends on a dynamic dimension");
    const int64_t full = (*in - 1) * shape.stride[d] + (shape.kernel[d] - 1) * shape.dilation[d] + 1 +
                         value_at(attrs.output_padding, i, 0);
    const int64_t total = std::max<int64_t>(full - *out, 0);
    shape.pad[d] = attrs.padding_mode == PaddingMode::same_upper ? total / 2 : total - total / 2;
  }
  if (deconv::phase_count(shape) > 64) return refuse("a stride of more than 64 phases");
  return shape;
}

Result<Emission> emit(const Problem& problem, const ConvShape& shape, const gemm::Blocking& blocking) {
  if (!problem.inputs[1].constant) return emission_of(problem, deconv::DeconvParams{shape, blocking, false}, {0, 1});
  return emission_with_weights(problem, encode_params(deconv::DeconvParams{shape, blocking}),
                               deconv::packed_floats(shape, blocking), [&](std::span<float> packed) {
                                 deconv::pack_weights(shape, blocking, problem.inputs[1].constant->as<float>(), packed);
                               });
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
  const auto resolved = shape_of(problem);
  if (!resolved) return refuse(resolved.error().reason);
  const ConvShape& shape = *resolved;
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
