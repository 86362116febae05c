// SPDX-License-Identifier: Apache-2.0
// Kernel "gemm_weight_only": out[..., M, N] = program(A[..., M, K] x B[K, N], operands...), f32, by weights of 4 or 8
// bits that are dequantised in registers: (code - zero) * scale, of which scales and zeros are those of blocks along K.
//
// Inputs: 0 = A, f32, of any strides; 1 = B: packed while building, a rank-1 u8 tensor, see PackedPanels; 2... = the
// program's operands, f32, each of the output's rank with dimensions equal to the output's or 1. Output: f32, the last
// stride 1. Record.params: WeightOnlyParams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/divide.h"
#include "device/params.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu::gemm {

enum class Codes : uint8_t { integers, e4m3, e5m2, e2m1 };

// B in panels of 64 columns, the last one filled up with weights of 0. A panel is one stream, a piece for each block:
//   scales  64 f16 where `half_scales`, or else f32
//   zeros   64 u8, of codes; only where `has_zeros`: otherwise 8 or 128, half of the codes
//   codes   for each 32 / bits neighbours along K 64 words, a column's neighbours in each, the first in the lowest
//   bits;
//           those of 8 bits less 128, in two's complement, or floats as they are
struct PackedPanels {
  static constexpr int kColumns = 64;
  int64_t k = 0, n = 0;
  int64_t block = 0;  // of K: a multiple of 16, or K
  int bits = 4;
  bool has_zeros = false, half_scales = false;
  Codes codes = Codes::integers;

  int per_word() const { return 32 / bits; }
  int64_t panels() const { return ceil_div(n, kColumns); }
  int64_t blocks() const { return ceil_div(k, block); }
  int64_t scale_bytes() const { return kColumns * (half_scales ? 2 : 4); }
  int64_t zero_bytes() const { return has_zeros ? kColumns : 0; }
  int64_t code_bytes(int64_t depth) const { return ceil_div<int64_t>(depth, per_word()) * kColumns * 4; }
  int64_t block_bytes() const { return scale_bytes() + zero_bytes() + code_bytes(block); }
  int64_t panel_bytes() const {
    return (blocks() - 1) * block_bytes() + scale_bytes() + zero_bytes() + code_bytes(k - (blocks() - 1) * block);
  }
  int64_t bytes() const { return panels() * panel_bytes(); }
};

struct WeightOnlyParams {
  int64_t k = 1, n = 1, block = 1, bits = 4;
  bool has_zeros = false, half_scales = false;
  int64_t codes = 0;
  static constexpr size_t kAddedMembers = 1;
  static constexpr auto members() {
    using P = WeightOnlyParams;
    return std::tuple(&P::k, &P::n, &P::block, &P::bits, &P::has_zeros, &P::half_scales, &P::codes);
  }
};

// nullopt where a kernel cannot work with them.
std::optional<PackedPanels> panels_of(const WeightOnlyParams& params);

// Rows that one pass over a panel multiplies at most; fewer with few registers.
inline constexpr int kMostPanelRows = 5;

// sums[r][64] = row r of A x the panel.
struct PanelProduct {
  const PackedPanels& panels;
  const std::byte* panel;
  const float* const* a;
  float* sums;
};
struct PanelKernel {
  int most_rows;
  void (*multiply)(const PanelProduct& product, int rows);
  // The weights of the first `columns`, a multiple of 16, as panels of `width` columns that lie row by row. Null where
  // `multiply` is as fast for many rows.
  void (*unpack)(const PackedPanels& panels, const std::byte* panel, int columns, int width, float* to);
};

}  // namespace lathe::cpu::gemm

namespace lathe::cpu {
LATHE_ISA_DECLARE(const gemm::PanelKernel& weight_only_kernel())
}  // namespace lathe::cpu
