// SPDX-License-Identifier: Apache-2.0
// Kernel `nonzero`: where elements are not 0, in two steps, for its result's size is only known between them. Elements
// are met in row-major order, in chunks of kChunk.
//   program  none
//   params   {step}
// Step 0 counts.
//   inputs   0: x of any type, any strides
//   outputs  0: found, i64 [elements of x + 1], for no count is greater than the list that holds it: first how many
//            there are before each chunk; the last element is how many there are in all
// Step 1 writes.
//   inputs   0: x; 1: found
//   outputs  0: positions, i64 [dimensions of x, how many there are], any strides
#pragma once

#include <cstdint>

namespace lathe::cpu::nonzero {

inline constexpr int64_t kChunk = 4096;

}  // namespace lathe::cpu::nonzero
