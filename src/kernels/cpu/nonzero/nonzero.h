// SPDX-License-Identifier: Apache-2.0
// Kernel `nonzero`: the positions of elements that are not 0. It has two steps, as the size of its result is only known
// between them. Elements are visited in row-major order, in chunks of kChunk.
//   program  none
//   params   NonzeroParams
// The first step counts.
//   inputs   0: x of any type, any strides
//   outputs  0: found, i64 [elements of x + 1], dense: first, for each chunk, how many there are before it; the last
//            element is how many there are in all. So the list is longer than the kernel needs: a size that a plan
//            reads from a list may not exceed the length of the list.
// The second one writes.
//   inputs   0: x; 1: found
//   outputs  0: positions, i64 [dimensions of x, how many there are], any strides
#pragma once

#include <cstdint>

#include "device/params.h"

namespace lathe::cpu {

struct NonzeroParams {
  bool writes = false;  // whether it is the second step
  static constexpr auto members() { return std::tuple(&NonzeroParams::writes); }
};

namespace nonzero {

inline constexpr int64_t kChunk = 4096;

}

}  // namespace lathe::cpu
