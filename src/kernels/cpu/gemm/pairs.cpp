// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/pairs.h"

#include <algorithm>

#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/transpose.h"

namespace lathe::cpu::gemm {
namespace {

// A panel of B, whose columns lie one after the other: pairs of each, then their transpose.
void pack_columns(const float* columns, int count, int64_t k, int64_t n_stride, int stride, float* out) {
  static const auto pair = LATHE_ISA_SELECT(pair_neighbours);
  static const auto transpose = LATHE_ISA_SELECT(transpose_floats);
  constexpr int64_t kDepth = 32;  // pairs
  float pairs[kMaxTileColumns * kDepth];
  for (int64_t at = 0; at < k; at += 2 * kDepth, out += kDepth * stride) {
    const int64_t depth = std::min(2 * kDepth, k - at);
    for (int c = 0; c < count; ++c) pair(columns + c * n_stride + at, depth, pairs + c * kDepth, multiplies_bf16());
    transpose(out, stride, pairs, kDepth, pairs_of(depth), count);
  }
}

// ... whose rows are read in any steps.
void pack_rows(const float* rows, int count, int64_t k, int64_t k_stride, int64_t n_stride, int stride, float* out) {
  static const auto pair = LATHE_ISA_SELECT(pair_rows);
  float copies[2][kMaxTileColumns];
  const auto row_at = [&](int64_t at, float* copy) -> const float* {
    if (at >= k) return nullptr;
    const float* row = rows + at * k_stride;
    if (n_stride == 1) return row;
    for (int c = 0; c < count; ++c) copy[c] = row[c * n_stride];
    return copy;
  };
  for (int64_t at = 0; at < k; at += 2, out += stride)
    pair(row_at(at, copies[0]), row_at(at + 1, copies[1]), count, out, multiplies_bf16());
}

}  // namespace

void pack_pairs(const Panels& panels, int64_t k, const float* source, int64_t k_stride, int64_t n_stride, int64_t first,
                int64_t last, float* packed) {
  for (int64_t panel = first; panel < last; ++panel) {
    const int columns = panels.columns(panel), stride = panels.stride(panel);
    const float* from = source + panel * panels.width * n_stride;
    float* out = packed + panels.offset(panel);
    if (k_stride == 1 && n_stride != 1)
      pack_columns(from, columns, k, n_stride, stride, out);
    else
      pack_rows(from, columns, k, k_stride, n_stride, stride, out);
    for (int64_t i = 0; i < panels.k; ++i) std::fill(out + i * stride + columns, out + (i + 1) * stride, 0.0f);
  }
}

}  // namespace lathe::cpu::gemm
