// SPDX-License-Identifier: Apache-2.0
// Nodes that give a rectangle of elements of what they read: padding with a number, and slices with steps.
#pragma once

#include "ir/graph.h"

namespace lathe {

// In each dimension, element i of the result is element `start` + i * `step` of the input, or, where that has none, the
// number.
struct Excerpt {
  Ints start, step;
  std::vector<bool> whole;     // dimensions that are the input's, as they are
  std::optional<float> value;  // none = there is an element for each
};

// nullopt for other nodes, where it is not known before the network runs, and for slices that are views of memory.
std::optional<Excerpt> excerpt_of(const ir::Node& node);

}  // namespace lathe
