// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/integer_panels.h"
#include "kernels/cpu/simd.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

typedef uint8_t Bytes __attribute__((vector_size(kLanes)));

// The sum of the four i8 of each lane.
LATHE_INLINE IntVec sum_of_four(IntVec fours) {
  return (fours << 24 >> 24) + (fours << 16 >> 24) + (fours << 8 >> 24) + (fours >> 24);
}

}  // namespace

void pack_four_rows(const gemm::IntegerRowsOfB& b, int columns, int stride, int32_t* out, int32_t* sums) {
  const auto flip = static_cast<int32_t>(b.is_unsigned ? 0x80808080u >> (32 - 8 * b.rows) : 0);
  int c = 0;
  for (; b.column_stride == 1 && c + kLanes <= columns; c += kLanes) {
    IntVec fours = broadcast_int(flip);
    for (int64_t k = 0; k < b.rows; ++k) {
      Bytes row;
      __builtin_memcpy(&row, b.data + k * b.row_stride + c, sizeof(row));
      fours ^= __builtin_convertvector(row, IntVec) << static_cast<int>(8 * k);
    }
    store_int(out + c, fours);
    if (sums) store_int(sums + c, load_int(sums + c) + sum_of_four(fours) * 128);
  }
  for (; c < columns; ++c) {
    const std::byte* column = b.data + c * b.column_stride;
    uint32_t four = 0;
    if (b.row_stride == 1 && b.rows == 4)
      __builtin_memcpy(&four, column, sizeof(four));
    else
      for (int64_t k = 0; k < b.rows; ++k) four |= static_cast<uint32_t>(column[k * b.row_stride]) << (8 * k);
    out[c] = static_cast<int32_t>(four) ^ flip;
    if (sums) sums[c] += sum_of_four(broadcast_int(out[c]))[0] * 128;
  }
  for (; c < stride; ++c) out[c] = 0;
}

}  // namespace lathe::cpu::LATHE_ISA
