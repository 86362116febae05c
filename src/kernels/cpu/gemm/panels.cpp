// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/panels.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/transpose.h"

namespace lathe::cpu::gemm {
namespace {

// Columns of k-contiguous B.
void pack_transposed(const float* source, int64_t n_stride, int64_t k, int columns, int stride, float* out) {
  static const auto transpose = LATHE_ISA_SELECT(transpose_floats);
  transpose(out, stride, source, n_stride, k, columns);
  if (columns == stride) return;
  for (int64_t i = 0; i < k; ++i) std::fill(out + i * stride + columns, out + (i + 1) * stride, 0.0f);
}

}  // namespace

void pack(const Panels& panels, const float* source, int64_t k_stride, int64_t n_stride, int64_t first, int64_t last,
          float* packed) {
  for (int64_t panel = first; panel < last; ++panel) {
    const int columns = panels.columns(panel), stride = panels.stride(panel);
    const float* from = source + panel * panels.width * n_stride;
    float* out = packed + panels.offset(panel);
    if (k_stride == 1 && n_stride != 1) {
      pack_transposed(from, n_stride, panels.k, columns, stride, out);
      continue;
    }
    for (int64_t k = 0; k < panels.k; ++k, out += stride) {
      const float* row = from + k * k_stride;
      if (n_stride == 1)
        std::memcpy(out, row, columns * sizeof(float));
      else
        for (int c = 0; c < columns; ++c) out[c] = row[c * n_stride];
      std::fill(out + columns, out + stride, 0.0f);
    }
  }
}

}  // namespace lathe::cpu::gemm
