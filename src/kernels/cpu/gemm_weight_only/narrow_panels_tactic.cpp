// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm_weight_only/narrow_panels_tactic.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/gemm/tile_cost_tactic.h"

namespace lathe::cpu::gemm {
namespace {

bool are_halves(const PackedWeights& weights) {
  for (int64_t k = 0; k < weights.k(); k += weights.block())
    for (int64_t n = 0; n < weights.n(); ++n)
      if (const float scale = weights.scale(k, n); static_cast<float>(Half(scale)) != scale) return false;
  return true;
}

Codes codes_of(DType dtype) {
  if (dtype == DType::f8e4m3fn) return Codes::e4m3;
  if (dtype == DType::f8e5m2) return Codes::e5m2;
  return dtype == DType::f4e2m1 ? Codes::e2m1 : Codes::integers;
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
      const bool is_centred = panels.bits == 8 && panels.codes == Codes::integers;
      const uint32_t code = weights.code(first_k + k, first_n + c) ^ (is_centred ? 0x80u : 0u);
      words[k / panels.per_word() * PackedPanels::kColumns + c] |= code << k % panels.per_word() * panels.bits;
    }
  }
}

}  // namespace

PackedPanels panels_of(std::span<const PackedWeights> weights) {
  const PackedWeights& first = weights.front();
  return {first.k(),
          first.n(),
          first.block(),
          first.bits(),
          std::ranges::any_of(weights, &PackedWeights::has_other_zeros),
          std::ranges::all_of(weights, are_halves),
          codes_of(first.dtype())};
}

WeightOnlyParams params_of(const PackedPanels& panels) {
  return {panels.k,
          panels.n,
          panels.block,
          panels.bits,
          panels.has_zeros,
          panels.half_scales,
          static_cast<int64_t>(panels.codes)};
}

Result<Tensor> pack(std::span<const PackedWeights> weights, const PackedPanels& panels) {
  LATHE_ASSIGN(Tensor packed, Tensor::allocate(DType::u8, {panels.bytes() * std::ssize(weights)}));
  auto* to = static_cast<std::byte*>(packed.mutable_data());
  std::memset(to, 0, packed.bytes());
  for (const PackedWeights& matrix : weights)
    for (int64_t panel = 0; panel < panels.panels(); ++panel, to += panels.panel_bytes())
      for (int64_t b = 0; b < panels.blocks(); ++b)
        pack_block(matrix, panels, b * panels.block, panel * PackedPanels::kColumns, to + b * panels.block_bytes());
  return packed;
}

double weight_only_us(const Target& target, const PackedWeights& weights, double rows, double matrices) {
  const TileCost cost(target);
  const double products = static_cast<double>(weights.k() * weights.n());
  const double steps = matrices * products / cost.columns() * std::ceil(rows / cost.most_rows(1));
  constexpr double kUnpacking = 2;  // a step of one row takes about as long as one of two
  const double clocks = steps * cost.step(1, std::min<double>(rows, cost.most_rows(1))) * kUnpacking /
                        cost.cores(matrices * rows * products);
  const double bytes = matrices * products * (weights.bits() / 8.0 + 4.0 / static_cast<double>(weights.block()));
  return cost.launch_us(clocks, bytes, matrices * rows * static_cast<double>(weights.k()) * sizeof(float));
}

}  // namespace lathe::cpu::gemm
