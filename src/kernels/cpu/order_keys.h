// SPDX-License-Identifier: Apache-2.0
// Keys: integers that compare as the elements compare that they stand for. Code that looks for the best of many
// elements is then compiled for two types of keys, and not for each type of elements.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu {

// Whether keys of the type are int64_t; others are int32_t.
inline bool has_wide_keys(DType type) { return size_of(type) == 8; }

struct KeyOrder {
  bool largest;   // larger elements have greater keys; false: smaller elements have
  bool nan_wins;  // NaN has the greatest key of all; false: NaN counts as the largest element
};

// The keys of a row of elements, one behind the other. All NaNs have one key, and so have both zeros.
LATHE_ISA_DECLARE(void order_keys(DType type, const void* source, int64_t stride, int64_t count, KeyOrder order,
                                  void* keys))
// The greatest of `count` keys, of which there must be one; `wide` is has_wide_keys().
LATHE_ISA_DECLARE(int64_t greatest_key(bool wide, const void* keys, int64_t count))
// Lists the positions i in order where keys[i] is greater than bounds[i] (`each`) or than bounds[0], and returns how
// many there are. Bounds are of the keys' type; at most 65536 keys.
LATHE_ISA_DECLARE(int64_t keys_above(bool wide, const void* keys, int64_t count, const void* bounds, bool each,
                                     uint16_t* numbers))
// Where keys[i] is greater than best[i] (`last`: or equal), it takes its place, and `position` that of positions[i].
// Keys and positions are of one type.
LATHE_ISA_DECLARE(void keep_greater(bool wide, const void* keys, int64_t count, int64_t position, bool last, void* best,
                                    void* positions))

}  // namespace lathe::cpu
