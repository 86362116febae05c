// SPDX-License-Identifier: Apache-2.0
// Weights in the order in which a kernel reads them.
#pragma once

#include <span>

#include "tuning/tactic.h"

namespace lathe {

// A loop over elements that are packed: how many, and the elements between two of them on either side.
struct PackedAxis {
  int64_t extent, from, to;
};
// Copies the elements, of `size` bytes, that the loops visit together.
void copy_elements(const std::byte* from, std::byte* to, size_t size, std::span<const PackedAxis> axes);

// Of the same type, whose elements are 0 where the loops put none.
Result<Packed> pack(const Known& weights, const Dims& dims, const std::vector<PackedAxis>& axes);
// The same elements under other dims.
Packed reshaped(Packed packed, const Dims& dims);

}  // namespace lathe
