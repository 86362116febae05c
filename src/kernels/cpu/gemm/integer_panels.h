// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "kernels/cpu/gemm/panels.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu::gemm {

// Weights of products of integers: a matrix of floats, panels as ever, each of which holds four i8 along k; and behind
// them 128 times the sum of each column, by which products of i8 are too large once 128 makes them u8.
int64_t packed_integers(const Panels& fours, int64_t groups);
// Each column's K weights are contiguous, and those of the groups lie one after the other.
void pack_integers(const Panels& fours, int64_t groups, const int8_t* columns, std::span<int32_t> packed);

// Weights that are computed: rows of any strides, i8 or u8. The latter are packed 128 less, which IntegerEpilogue's
// row_factor makes up for.
struct IntegerRowsOfB {
  const std::byte* data;
  int64_t rows, row_stride, column_stride;
  bool is_unsigned;
};
// Packs them as fours [first, first + rows / 4) of a panel, with zeros where the last four is incomplete. 128 times
// the columns' sums are added to `sums`, of the panel's columns, unless that is null.
void pack_fours(const Panels& fours, int64_t panel, int64_t first, const IntegerRowsOfB& b, int32_t* packed,
                int32_t* sums);

}  // namespace lathe::cpu::gemm

namespace lathe::cpu {
// At most four rows, of one panel, to out[stride].
LATHE_ISA_DECLARE(void pack_four_rows(const gemm::IntegerRowsOfB& b, int columns, int stride, int32_t* out,
                                      int32_t* sums))
}  // namespace lathe::cpu
