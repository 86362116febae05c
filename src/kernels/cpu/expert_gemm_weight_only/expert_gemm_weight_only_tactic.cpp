// SPDX-License-Identifier: Apache-2.0
// Rows times the matrices of their experts, of 4 and 8 bits: kernel "expert_gemm_weight_only".
#include "kernels/cpu/expert_gemm_weight_only/expert_gemm_weight_only.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/gemm/tile_cost_tactic.h"
#include "kernels/cpu/gemm_weight_only/narrow_panels_tactic.h"
#include "tuning/work.h"

namespace lathe::cpu {
namespace {

// As many rows for each expert as there are on average.
double microseconds(const Problem& problem) {
  const PackedWeights weights(problem.inputs[1], problem.attrs<ExpertMatmulAttrs>().transpose_w);
  const Dims& out = problem.outputs[0].opt_dims;
  const double rows = volume_of(Dims(out.begin(), out.end() - 1));
  const double used = std::clamp(rows, 1.0, static_cast<double>(problem.inputs[1].opt_dims[0]));
  return gemm::weight_only_us(problem.target, weights, std::max(rows / used, 1.0), used);
}

Result<Emission> emit(const Problem& problem) {
  const auto& attrs = problem.attrs<ExpertMatmulAttrs>();
  const std::vector<PackedWeights> weights = packed_matrices(problem.inputs[1], attrs.transpose_w);
  const gemm::PackedPanels panels = gemm::panels_of(weights);
  LATHE_ASSIGN(Tensor packed, gemm::pack(weights, panels));
  const gemm::ExpertWeightOnlyParams params{std::ssize(weights), attrs.strict, gemm::params_of(panels)};
  Emission emission = emission_with_weights(problem, encode_params(params), std::move(packed));
  emission.inputs.insert(emission.inputs.begin() + 2, {StepInput::input, 2});
  return emission;
}

}  // namespace

Matched match_expert_gemm_weight_only(const Problem& problem) {
  if (!problem.is(OpKind::expert_matmul)) return refuse("not rows by matrices of experts");
  if (auto reason = unsupported_feature(problem, {.packed_weights = true})) return refuse(*std::move(reason));
  const Operand& out = problem.outputs[0];
  for (const Operand* operand : tensors_of(problem))
    if (operand->dtype != DType::f32 && operand->blocks.empty() && operand != &problem.inputs[1] &&
        operand != &problem.inputs[2])
      return refuse(fmt::format("an operand is {}, this kernel computes in f32", name_of(operand->dtype)));
  if (out.strides.back() != Expr(1) && out.dims.back() != Expr(1))
    return refuse("the output's rows are not contiguous");
  return match_later([&problem] { return emit(problem); }, microseconds(problem));
}

}  // namespace lathe::cpu
