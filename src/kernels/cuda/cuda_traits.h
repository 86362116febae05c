// SPDX-License-Identifier: Apache-2.0
// What the kernels for NVIDIA GPUs take of a graph.
#pragma once

#include "tuning/backend.h"

namespace lathe::cuda {

inline constexpr BackendTraits kTraits = {.fuses_narrow_types = true,
                                          .fuses_prologues = true,
                                          .fuses_movement = true,
                                          .narrow_floats = true,
                                          .integer_products = true,
                                          .narrows_precision = true,
                                          .least_pixel = 4};

}  // namespace lathe::cuda
