// SPDX-License-Identifier: Apache-2.0
// Padding with a number that is known.
#pragma once

#include "ir/graph.h"

namespace lathe {

struct ConstantPadding {
  Ints begin, end;  // elements that are added in each dimension of the result, none of them negative
  double value = 0;
};

// What a pad node adds, when that is the same number everywhere and known before the network runs. Null nodes are fine.
std::optional<ConstantPadding> constant_padding_of(const ir::Node* node);

}  // namespace lathe
