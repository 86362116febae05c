// SPDX-License-Identifier: Apache-2.0
// Matrix products by weights of 4 and 8 bits: kernel "gemm_weight_only".
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/gemm/tile_cost_tactic.h"
#include "kernels/cpu/gemm_weight_only/gemm_weight_only.h"
#include "kernels/match_tactic.h"
#include "tuning/packed_weights.h"

namespace lathe::cpu {
namespace {

using gemm::PackedPanels;

bool are_halves(const PackedWeights& weights) {
  for (int64_t k = 0; k < weights.k(); k += weights.block())
    for (int64_t n = 0; n < weights.n(); ++n)
      if (const float scale = weights.scale(k, n); static_cast<float>(Half(scale)) != scale) return false;
  return true;
}

gemm::Codes codes_of(DType dtype) {
  if (dtype == DType::f8e4m3fn) return gemm::Codes::e4m3;
  if (dtype == DType::f8e5m2) return gemm::Codes::e5m2;
  return dtype == DType::f4e2m1 ? gemm::Codes::e2m1 : gemm::Codes::integers;
}

PackedPanels panels_of(const PackedWeights& weights) {
  return {weights.k(),
          weights.n(),
          weights.block(),
          weights.bits(),
          weights.has_other_zeros(),
          are_halves(weights),
          codes_of(weights.dtype())};
}

// One block of a panel.
void pack_block(const PackedWeights& weights, const PackedPanels& panels, int64_t first_k, int64_t first_n,
                std::byte* to) {
  const int64_t depth = std::min(panels.block, panels.k - first_k);
  const auto columns = std::min<int64_t>(PackedPanels::kColumns, panels.n - first_n);
  auto* words = reinterpret_cast<uint32_t*>(to + panels.scale_bytes() + panels.zero_bytes());
  for (int64_t c = 0; c < columns; ++c) {
    const float scale = weights.scale(first_k, first_n + c);
    if (panels.half_scales)
      reinterpret_cast<Half*>(to)[c] = Half(scale);
    else
      reinterpret_cast<float*>(to)[c] = scale;
    if (panels.has_zeros)
      reinterpret_cast<uint8_t*>(to + panels.scale_bytes())[c] =
          static_cast<uint8_t>(weights.zero(first_k, first_n + c));
    for (int64_t k = 0; k < depth; ++k) {
      const bool is_centred = panels.bits == 8 && panels.codes == gemm::Codes::integers;
      const uint32_t code = weights.code(first_k + k, first_n + c) ^ (is_centred ? 0x80u : 0u);
      words[k / panels.per_word() * PackedPanels::kColumns + c] |= code << k % panels.per_word() * panels.bits;
    }
  }
}

Result<Tensor> pack(const PackedWeights& weights, const PackedPanels& panels) {
  LATHE_ASSIGN(Tensor packed, Tensor::allocate(DType::u8, {panels.bytes()}));
  auto* to = static_cast<std::byte*>(packed.mutable_data());
  std::memset(to, 0, packed.bytes());
  for (int64_t panel = 0; panel < panels.panels(); ++panel, to += panels.panel_bytes())
    for (int64_t b = 0; b < panels.blocks(); ++b)
      pack_block(weights, panels, b * panels.block, panel * PackedPanels::kColumns, to + b * panels.block_bytes());
  return packed;
}

// Products as those of tiles of floats, and the memory of what is packed.
double microseconds(const Problem& problem, const PackedWeights& weights) {
  const Dims& out = problem.outputs[0].opt_dims;
  const auto rows = static_cast<double>(std::accumulate(out.begin(), out.end() - 1, int64_t{1}, std::multiplies<>()));
  const gemm::TileCost cost(problem.target);
  const double products = static_cast<double>(weights.k() * weights.n());
  const double steps = products / cost.columns() * std::ceil(rows / cost.most_rows(1));
  constexpr double kUnpacking = 2;  // a step of one row takes about as long as one of two
  const double clocks =
      steps * cost.step(1, std::min<double>(rows, cost.most_rows(1))) * kUnpacking / cost.cores(rows * products);
  const double bytes = products * (weights.bits() / 8.0 + 4.0 / static_cast<double>(weights.block()));
  return cost.launch_us(clocks, bytes, rows * static_cast<double>(weights.k()) * sizeof(float));
}

Result<Emission> emit(const Problem& problem) {
  const PackedWeights weights(problem.inputs[1], problem.attrs<MatmulAttrs>().transpose_b);
  const PackedPanels panels = panels_of(weights);
  LATHE_ASSIGN(Tensor packed, pack(weights, panels));
  const gemm::WeightOnlyParams params{panels.k,
                                      panels.n,
                                      panels.block,
                                      panels.bits,
                                      panels.has_zeros,
                                      panels.half_scales,
                                      static_cast<int64_t>(panels.codes)};
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
