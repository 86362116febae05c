// SPDX-License-Identifier: Apache-2.0
// In which order those who read a value would have its elements.
#pragma once

#include "ir/graph.h"

namespace lathe {

// How many of them there are of each kind.
struct Readers {
  size_t channels_last = 0;  // copy what lies otherwise
  size_t row_major = 0;      // copy what lies otherwise; the caller of the network is one
  size_t pointwise = 0;      // read any order, best the one that they write
  size_t other = 0;          // read any order
};

Readers readers_of(const ir::Value& value);

// Whether the transposition moves dimension 1 behind all others: what lies channels-last is row-major then.
bool moves_channels_last(const ir::Node& transpose);

}  // namespace lathe
