// SPDX-License-Identifier: Apache-2.0
// What the kernels for NVIDIA GPUs take of a graph.
#pragma once

#include "tuning/backend_traits.h"

namespace lathe::cuda {

inline constexpr OpKind kFurtherResults[] = {OpKind::layer_normalization, OpKind::rms_normalization};

inline constexpr BackendTraits kTraits = {
    .arithmetic = {.integer_products = true, .packed_weights = true, .paired_columns = true},
    .fuses_narrow_types = true,
    .fuses_prologues = true,
    .fuses_movement = true,
    .fuses_gathers = true,
    .narrows_precision = true,
    .least_pixel = 4,
    .most_gathered_window = 512,
    .most_rows_normalized_as_read = 16,
    // Fewer rows are multiplied by kernels that keep no sums. Of more, tiles fill a device without splits, and sums in
    // f32 are more bytes than results in 16 bits.
    .rows_normalized_as_written = {.least = 17, .most = 512},
    // Rows that are written as well gain less by splits: on an H200 197 of them took less time than by steps of their
    // own, 512 more.
    .most_rows_written_beside = 256,
    .further_results = kFurtherResults};

}  // namespace lathe::cuda
