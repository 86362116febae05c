// SPDX-License-Identifier: Apache-2.0
// What a backend's kernels take: how a graph is rewritten and cut into regions for them.
#pragma once

#include <cstdint>
#include <span>

#include "ops/arithmetic.h"
#include "ops/op.h"

namespace lathe {

// From the least to the most, both counted in; by itself no number of rows.
struct RowCounts {
  int64_t least = 1, most = 0;
};

struct BackendTraits {
  Arithmetic arithmetic = {};
  bool fuses_narrow_types = false;   // f16, bf16 and small integers are operands and results of regions, as f32 is
  bool fuses_prologues = false;      // kernels may compute their input as they read it
  bool fuses_movement = false;       // expressions may read and write in another order, and concatenations in parts
  bool fuses_gathers = false;        // gathers compute what follows them
  bool narrows_precision = false;    // it pays to compute in f16, bf16 or TF32 where the application allows that
  bool windows_keep_layout = false;  // pooling and resizing write row-major images as fast as they read them
  // Images of fewer channels are copied with pixels that have room for so many, which kernels read at once; 0 = read as
  // they come.
  int64_t least_pixel = 0;
  // Elements, of four to a pixel, of the largest window of few channels of 16 or 8 bits whose pixels convolutions
  // gather for many windows at once: from planes, too, and computed as they are read. 0 = of none.
  int64_t most_gathered_window = 0;
  // Of products of floats of 16 bits by constant weights: at most so many rows are normalised as they are read, where
  // that costs less than writing them, and so many rows of results as they are written.
  int64_t most_rows_normalized_as_read = 0;
  RowCounts rows_normalized_as_written = {};
  // Of the latter, so many at most where the results are written beside their normalisation.
  int64_t most_rows_written_beside = 0;
  // Ops whose kernels also write what is computed of their result and of constants, where others read that result, too.
  // Where there are such ops, expressions do so as well.
  std::span<const OpKind> further_results = {};
};

}  // namespace lathe
