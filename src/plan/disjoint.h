// SPDX-License-Identifier: Apache-2.0
// Views of one storage that share no element.
#pragma once

#include <span>

#include "plan/plan.h"

namespace lathe::plan {

// Whether no element of one is an element of the other, whatever the sizes in these ranges. Proven of parts of a
// concatenation: views of equal strides, one of which lies behind the other along a dimension, in a layout whose
// dimensions nest. For channels last, [n, 3, h, w] at offset 0 and [n, 5, h, w] at offset 3 are disjoint if their
// pixels are 8 apart.
bool are_disjoint(const TensorDesc& a, const TensorDesc& b, std::span<const Range> ranges);

}  // namespace lathe::plan
