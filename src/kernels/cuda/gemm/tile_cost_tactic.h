// SPDX-License-Identifier: Apache-2.0
// How long a product takes in tiles, as far as that can be told without measuring.
#pragma once

#include "kernels/cuda/gemm/tile_tactic.h"

namespace lathe::cuda::gemm {

double predict(const TileShape& tile, const Extent& extent);  // microseconds
double memory_us(double bytes, const Target& target);         // to read so many, which may be in the last cache

int64_t registers(const TileShape& tile, const Extent& extent);  // of a thread
int64_t blocks(const TileShape& tile, const Extent& extent);
bool fits_registers(const TileShape& tile, const Extent& extent);

}  // namespace lathe::cuda::gemm
