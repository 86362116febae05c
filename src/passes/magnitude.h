// SPDX-License-Identifier: Apache-2.0
// How large the elements of a value can be, as far as constants tell.
#pragma once

#include "ir/graph.h"

namespace lathe {

// No element is farther from 0; infinity = that is not known.
double largest_magnitude(const ir::Value* value);

}  // namespace lathe
