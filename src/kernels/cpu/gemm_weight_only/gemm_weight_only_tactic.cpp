// SPDX-License-Identifier: Apache-2.0
// Matrix products by weights of 4 and 8 bits: kernel "gemm_weight_only".
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/gemm_weight_only/narrow_panels_tactic.h"
#include "kernels/match_tactic.h"
#include "tuning/work.h"

namespace lathe::cpu {
namespace {

using gemm::PackedPanels;

double microseconds(const Problem& problem, const PackedWeights& weights) {
  const Dims& out = problem.outputs[0].opt_dims;
  return gemm::weight_only_us(problem.target, weights, volume_of(Dims(out.begin(), out.end() - 1)), 1);
}

Result<Emission> emit(const Problem& problem) {
  const PackedWeights weights(problem.inputs[1], problem.attrs<MatmulAttrs>().transpose_b);
  const PackedPanels panels = gemm::panels_of({&weights, 1});
  LATHE_ASSIGN(Tensor packed, gemm::pack({&weights, 1}, panels));
  const gemm::WeightOnlyParams params = gemm::params_of(panels);
  Emission emission = emission_with_weights(problem, encode_params(params), std::move(packed));
  emission.inputs[0].transposed = problem.attrs<MatmulAttrs>().transpose_a;
  return emission;
}

}  // namespace

Matched match_gemm_weight_only(const Problem& problem) {
  if (!problem.is(OpKind::matmul)) return refuse("not a matrix product");
  if (auto reason = unsupported_feature(problem, {.permuted_inputs = 0b1, .packed_weights = true}))
    return refuse(*std::move(reason));
  const Operand &a = problem.inputs[0], &out = problem.outputs[0];
  for (const Operand* operand : tensors_of(problem))
    if (operand->dtype != DType::f32 && operand->blocks.empty() && operand != &problem.inputs[1])
      return refuse(fmt::format("an operand is {}, this kernel computes in f32", name_of(operand->dtype)));
  if (a.rank() < 2) return refuse("a vector operand");
  if (out.strides.back() != Expr(1) && out.dims.back() != Expr(1))
    return refuse("the output's rows are not contiguous");
  const PackedWeights weights(problem.inputs[1], problem.attrs<MatmulAttrs>().transpose_b);
  return match_later([&problem] { return emit(problem); }, microseconds(problem, weights));
}

}  // namespace lathe::cpu
