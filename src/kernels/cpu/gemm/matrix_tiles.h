// SPDX-License-Identifier: Apache-2.0
// Tiles whose factors and sums are in matrix registers.
#pragma once

#include "kernels/cpu/gemm/tile.h"

namespace lathe::cpu::gemm {

struct MatrixTiles {
  TileTable integers;  // of products of 8-bit integers, whose rows of A have no factor (IntegerEpilogue::row_factor)
  TileTable pairs;     // of bf16
};

}  // namespace lathe::cpu::gemm

namespace lathe::cpu {
// Null where the level has none.
LATHE_ISA_DECLARE(const gemm::MatrixTiles* matrix_tiles())
}  // namespace lathe::cpu
