// SPDX-License-Identifier: Apache-2.0
// Products that normalise the rows of their results.
#pragma once

#include "lowering/region.h"

namespace lathe {

// Makes a product of some hundred rows and a normalisation that reads its result one region, where the backend's
// kernels do that (BackendTraits::rows_normalized_as_written). Sums of such products are kept by splits of K, and
// another launch, which has whole rows, adds them up. Where others read the result, too, as in networks that normalise
// first, the region writes both.
std::vector<Region> with_normalized_results(std::vector<Region> regions, const NodeOrder& order,
                                            const GroupingOptions& options, const RefusedFusions& refused);

}  // namespace lathe
