// SPDX-License-Identifier: Apache-2.0
// The packed form of a weight matrix B[k, n]: panels of `width` columns, each stored as [k][width] floats; the last
// panel is as wide as its columns need, rounded up to 16, and zero-padded. The form depends on neither threads nor ISA
// level.
#pragma once

#include <cstdint>

#include "base/divide.h"

namespace lathe::cpu::gemm {

inline constexpr int kPanelQuantum = 16;

struct Panels {
  int64_t k = 0;
  int64_t n = 0;
  int width = 64;  // 16, 32, 48 or 64

  int64_t count() const { return ceil_div(n, width); }
  int columns(int64_t panel) const { return static_cast<int>(n - panel * width < width ? n - panel * width : width); }
  // Floats from one k to the next within the panel.
  int stride(int64_t panel) const { return round_up(columns(panel), kPanelQuantum); }
  int64_t offset(int64_t panel) const { return panel * width * k; }
  int64_t floats() const { return round_up(n, kPanelQuantum) * k; }
};

// Columns computed for each of n columns.
constexpr double padding_of(int64_t n) {
  return static_cast<double>(round_up(n, kPanelQuantum)) / static_cast<double>(n);
}

// Rows of B that a panel's rows first, first + step, ... become; element (i, n) is data[i * row_stride + n *
// column_stride].
struct RowsOfB {
  const float* data;
  int64_t count, row_stride, column_stride;
  int64_t first = 0, step = 1;
};
// `packed` is the start of panel 0.
void pack_rows(const Panels& panels, int64_t panel, const RowsOfB& rows, float* packed);

// Writes panels [first, last) of B, whose element (k, n) is source[k * k_stride + n * n_stride]. `packed` is the start
// of panel 0.
void pack(const Panels& panels, const float* source, int64_t k_stride, int64_t n_stride, int64_t first, int64_t last,
          float* packed);

}  // namespace lathe::cpu::gemm
