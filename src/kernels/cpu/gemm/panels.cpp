// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/panels.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/transpose.h"

namespace lathe::cpu::gemm {

void pack_rows(const Panels& panels, int64_t panel, const RowsOfB& rows, float* packed) {
  static const auto transpose = LATHE_ISA_SELECT(transpose_floats);
  const int columns = panels.columns(panel), stride = panels.stride(panel);
  const int64_t out_stride = rows.step * stride;
  const float* from = rows.data + panel * panels.width * rows.column_stride;
  float* out = packed + panels.offset(panel) + rows.first * stride;
  const bool is_transposed = rows.row_stride == 1 && rows.column_stride != 1;
  if (is_transposed) transpose(out, out_stride, from, rows.column_stride, rows.count, columns);
  for (int64_t i = 0; i < rows.count; ++i, from += rows.row_stride, out += out_stride) {
    if (!is_transposed && rows.column_stride == 1)
      std::memcpy(out, from, columns * sizeof(float));
    else
      for (int c = 0; !is_transposed && c < columns; ++c) out[c] = from[c * rows.column_stride];
    std::fill(out + columns, out + stride, 0.0f);
  }
}

void pack(const Panels& panels, const float* source, int64_t k_stride, int64_t n_stride, int64_t first, int64_t last,
          float* packed) {
  for (int64_t panel = first; panel < last; ++panel)
    pack_rows(panels, panel, {source, panels.k, k_stride, n_stride}, packed);
}

}  // namespace lathe::cpu::gemm
