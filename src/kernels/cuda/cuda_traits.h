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
    .most_normalized_rows = 16,
    .further_results = kFurtherResults};

}  // namespace lathe::cuda
