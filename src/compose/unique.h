// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ir/builder.h"

namespace lathe {

// What is in a tensor once: its elements, or its slices along an axis.
struct Unique {
  std::optional<int64_t> axis{};  // not negative; none = the elements of the flat tensor
  bool sorted = true;             // ascending, slices by their first element that differs; else as they come in x
};

// The values, in which only running tells how many there are; where each of them is first in x; which of them each
// element or slice of x is; how often each of them is in x. NaNs are one value, the largest.
struct UniqueValues {
  ir::Value *values = nullptr, *first = nullptr, *inverse = nullptr, *counts = nullptr;
};
UniqueValues unique_values(ir::GraphBuilder& c, ir::Value* x, const Unique& how);

}  // namespace lathe
