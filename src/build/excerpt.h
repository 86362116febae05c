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

  bool has_steps() const;
};

// Whether nodes of that kind may give one.
bool may_be_excerpt(const ir::Node& node);

// Of a slice that goes forwards, where that is known before the network runs.
std::optional<Excerpt> excerpt_of_slice(const ir::Node& slice);

// Of padding, too, but not of slices without steps, which are views of memory. nullopt for other nodes.
std::optional<Excerpt> excerpt_of(const ir::Node& node);

}  // namespace lathe
