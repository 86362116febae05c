// SPDX-License-Identifier: Apache-2.0
// How the threads of a grid share rows: the configurations of kernels that reduce or normalise rows.
#pragma once

#include "kernels/cuda/index_space.h"
#include "tuning/tactic.h"

namespace lathe::cuda {

// What such kernels choose.
struct RowShape {
  enum Kind : int64_t {
    resident,  // `lanes` threads for each row hold `chunks` chunks each in registers; `rows` rows for each block
    rows,      // `lanes` threads for each row, `rows_per_block` rows for each block, any length
    split,     // `splits` blocks of `lanes` threads for each row
    columns,   // tx * ty threads for tx * W rows that lie side by side
    strips,    // the same, with `splits` blocks
  } kind = rows;
  int64_t lanes = 32;
  int64_t rows_per_block = 1;
  int64_t chunks = 1;
  int64_t ty = 1;  // columns and strips have lanes / ty for tx
  int64_t unroll = 4;
  int64_t splits = 1;

  int64_t threads() const { return lanes * rows_per_block; }
  int64_t tx() const { return lanes / ty; }
  Config to_config(double predicted_us) const;
};

// Whether rows lie side by side: the dimension with stride 1 is the last kept one.
bool has_columns(const IndexSpace& space);
// Elements of a chunk: along the last dimension, or along the last kept one for columns.
int chunk_width(const IndexSpace& space);
// Configurations for x's rows, best guess first. Rows of results (`writes_rows`) have resident kernels, and others that
// read x twice. `state_bytes` of shared memory are needed for each warp, or for each
// column that a thread works on.
std::vector<Config> row_configs(const Target& target, const IndexSpace& space, bool writes_rows, uint32_t state_bytes);

Expr row_blocks(const IndexSpace& space, const RowShape& shape);  // the grid along x
uint32_t row_shared_bytes(const IndexSpace& space, const RowShape& shape, uint32_t state_bytes);

}  // namespace lathe::cuda
