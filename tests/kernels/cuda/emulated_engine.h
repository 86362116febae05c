// SPDX-License-Identifier: Apache-2.0
// Graphs built for the emulator and run on it: the results are those of the plain evaluation.
#pragma once

#include <string>
#include <vector>

#include "shape/expr.h"

namespace lathe::cuda {

using Kernels = std::vector<std::string>;

// The names of the plan's kernels, whether the cost model chose them or measurements, with checks of each result.
// `least_pixel`: see BuildOptions.
Kernels run_on_emulator(const std::string& body, const std::vector<Dims>& dims, double tolerance = 1e-5,
                        int64_t least_pixel = 0);

}  // namespace lathe::cuda
