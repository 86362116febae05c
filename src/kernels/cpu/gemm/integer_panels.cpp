// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/integer_panels.h"

#include <algorithm>
#include <cstring>

namespace lathe::cpu::gemm {

int64_t packed_integers(const Panels& fours, int64_t groups) { return (fours.floats() + fours.n) * groups; }

void pack_integers(const Panels& fours, int64_t groups, const int8_t* columns, std::span<int32_t> packed) {
  int32_t* sums = packed.data() + fours.floats() * groups;
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t p = 0; p < fours.count(); ++p) {
      const int stride = fours.stride(p);
      int32_t* panel = packed.data() + g * fours.floats() + fours.offset(p);
      std::memset(panel, 0, static_cast<size_t>(fours.k * stride) * sizeof(int32_t));
      for (int c = 0; c < fours.columns(p); ++c) {
        const int64_t column = g * fours.n + p * fours.width + c;
        const int8_t* weights = columns + column * fours.k * 4;
        int32_t sum = 0;
        for (int64_t k = 0; k < fours.k; ++k) {
          std::memcpy(panel + k * stride + c, weights + 4 * k, 4);
          for (int i = 0; i < 4; ++i) sum += weights[4 * k + i];
        }
        sums[column] = 128 * sum;
      }
    }
}

void pack_fours(const Panels& fours, int64_t panel, int64_t first, const IntegerRowsOfB& b, int32_t* packed,
                int32_t* sums) {
  static const auto pack_rows = LATHE_ISA_SELECT(pack_four_rows);
  const int stride = fours.stride(panel);
  int32_t* out = packed + fours.offset(panel) + first * stride;
  IntegerRowsOfB rows = b;
  rows.data += panel * fours.width * b.column_stride;
  for (int64_t k = 0; k < b.rows; k += 4, rows.data += 4 * b.row_stride, out += stride) {
    rows.rows = std::min<int64_t>(4, b.rows - k);
    pack_rows(rows, fours.columns(panel), stride, out, sums);
  }
}

}  // namespace lathe::cpu::gemm
