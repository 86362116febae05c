// SPDX-License-Identifier: Apache-2.0
// Rows that are written into a cache, however that is spelled, as updates of the cache itself.
#pragma once

#include "passes/rewrite.h"

namespace lathe {

// transpose(scatter_nd(transpose(x), rows)) = scatter_elements(x, rows): an update of a copy is one of x, which may be
// in place.
Result<bool> scatter_between_transposes(Rewrite& r);

// scatter_elements(x, one index, or indices that follow each other, repeated) = tensor_scatter(x).
Result<bool> scatter_of_rows(Rewrite& r);

}  // namespace lathe
