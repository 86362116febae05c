// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lowering/region.h"

namespace lathe {

// The regions, in order, of which those whose kernels can also write what an expression behind them computes of their
// result and of constants alone, where others read that result, too: a sum that the next one reads as it is, and a
// product as levels. All that the expression needs is there where the region runs.
std::vector<Region> with_further_results(std::vector<Region> regions, const GroupingOptions& options,
                                         const RefusedFusions& refused);

}  // namespace lathe
