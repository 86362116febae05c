// SPDX-License-Identifier: Apache-2.0
// Rows times the matrices of their experts: kernel "expert_gemm".
#include "kernels/cpu/expert_gemm/expert_gemm.h"

#include <algorithm>

#include "base/divide.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/pairs.h"
#include "kernels/cpu/gemm/panels_packing_tactic.h"
#include "kernels/cpu/gemm/tile_cost_tactic.h"
#include "kernels/match_tactic.h"
#include "tuning/work.h"

namespace lathe::cpu {
namespace {

using gemm::Blocking;

// Its sizes under the shapes that the tuner measures. K is what tiles see.
struct ExpertProduct {
  int64_t experts = 0, rows = 0, k = 0, n = 0;
  bool transposed = false, rounds = false;
  // Experts that have rows, at the most.
  int64_t used() const { return std::clamp<int64_t>(rows, 1, std::max<int64_t>(experts, 1)); }
};

ExpertProduct product_of(const Problem& problem) {
  const auto& attrs = problem.attrs<ExpertMatmulAttrs>();
  const Dims &weights = problem.inputs[1].opt_dims, &out = problem.outputs[0].opt_dims;
  const int64_t k = weights[attrs.transpose_w ? 2 : 1];
  const bool rounds = attrs.factors == DType::bf16;
  const auto rows = static_cast<int64_t>(volume_of(Dims(out.begin(), out.end() - 1)));
  return {weights[0], rows, rounds ? gemm::pairs_of(k) : k, out.back(), attrs.transpose_w, rounds};
}

double predicted_us(const Problem& problem, const ExpertProduct& p, const Blocking& blocking) {
  gemm::TiledProduct product;
  product.rows = std::max<int64_t>(p.rows / p.used(), 1);
  product.panels = {p.k, p.n, blocking.width};
  product.input_bytes = static_cast<double>(product.rows * p.k) * sizeof(float);
  product.blocking = blocking;
  product.is_narrow = p.rounds;
  const double launch = problem.target.launch_us, each = gemm::predicted_us(problem.target, product) - launch;
  const double share = static_cast<double>(p.used()) / static_cast<double>(std::max<int64_t>(p.experts, 1));
  return launch + static_cast<double>(p.used()) * each + (problem.inputs[1].weights ? 0 : share * packing_us(problem));
}

std::vector<Config> configs(const Problem& problem, const ExpertProduct& p) {
  std::vector<Blocking> choices;
  for (const int width : {64, 48, 32, 16})
    for (int64_t k_block : {0, 512, 256}) {
      if (width > gemm::kPanelQuantum && p.n <= width - gemm::kPanelQuantum) continue;
      if (k_block >= p.k) k_block = 0;
      const Blocking blocking{.width = width, .k_block = k_block, .split_columns = true};
      if (std::ranges::find(choices, blocking) != choices.end()) continue;
      if (!p.rounds || gemm::has_whole_tiles(problem.target, blocking)) choices.push_back(blocking);
    }
  return configs_of(
      choices, [&](const Blocking& blocking) { return gemm::to_text(blocking) + (p.rounds ? " bf16" : ""); },
      [&](const Blocking& blocking) { return predicted_us(problem, p, blocking); });
}

Result<Emission> emit_packed(const Problem& problem, const ExpertProduct& p, gemm::ExpertGemmParams params) {
  const Dims& weights = problem.inputs[1].weights->dims();
  params.packed = true;
  params.experts = p.experts, params.k = weights[p.transposed ? 2 : 1], params.n = p.n;
  const gemm::Panels panels{p.k, p.n, params.blocking.width};
  const int64_t k_stride = p.transposed ? 1 : params.n, n_stride = p.transposed ? params.k : 1;
  const int64_t matrix = params.k * params.n;
  const auto packing = [&] {
    return gemm::matrices_packing(panels, params.k, k_stride, n_stride, params.experts, params.bf16);
  };
  if (params.bf16) {
    LATHE_ASSIGN(Packed packed, gemm::packed_pairs(problem.inputs[1], packing()));
    return emission_with_weights(problem, encode_params(params), std::move(packed));
  }
  const auto pack = [&](const float* from, std::span<float> packed) {
    gemm::pack_weights(from, params.k, params.n, k_stride, n_stride, params.experts, matrix, panels.width, packed);
  };
  return emission_with_weights(problem, encode_params(params), panels.floats() * params.experts, pack, packing);
}

Result<Emission> emit(const Problem& problem, const ExpertProduct& p, const Config& config) {
  const bool strict = problem.attrs<ExpertMatmulAttrs>().strict;
  const gemm::ExpertGemmParams params{.strict = strict, .bf16 = p.rounds, .blocking = config.as<Blocking>()};
  const bool packed = problem.inputs[1].weights;
  LATHE_ASSIGN(Emission emission,
               packed ? emit_packed(problem, p, params) : Result<Emission>(emission_of(problem, params, {0, 1})));
  emission.inputs.insert(emission.inputs.begin() + 2, {StepInput::input, 2});
  if (!packed) emission.inputs[1].transposed = p.transposed;
  return emission;
}

}  // namespace

Matched match_expert_gemm(const Problem& problem) {
  if (!problem.is(OpKind::expert_matmul)) return refuse("not rows by matrices of experts");
  if (auto reason = unsupported_feature(problem, {})) return refuse(*std::move(reason));
  for (const Operand* operand : tensors_of(problem))
    if (operand != &problem.inputs[2] && operand->dtype != DType::f32)
      return refuse(fmt::format("an operand is {}, this kernel computes in f32", name_of(operand->dtype)));
  const Operand &weights = problem.inputs[1], &out = problem.outputs[0];
  if (out.strides.back() != Expr(1) && out.dims.back() != Expr(1))
    return refuse("the output's rows are not contiguous");
  for (const Expr& dim : weights.dims)
    if (dim == Expr(0)) return refuse("an empty dimension");
  return match_form(problem, product_of(problem), configs, emit);
}

}  // namespace lathe::cpu
