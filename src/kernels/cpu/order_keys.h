// SPDX-License-Identifier: Apache-2.0
// Integers that compare as elements of any type do: where the best of many is sought, all types are one or two.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu {

// Whether keys of the type are int64_t; others are int32_t.
inline bool has_wide_keys(DType type) { return size_of(type) == 8; }

struct KeyOrder {
  bool largest;   // greater keys are of larger elements; false: of smaller ones
  bool nan_wins;  // NaN has the greatest key of all; false: NaN is the largest element
};

// Keys of a row of elements. All NaNs are equal, and so are both zeros.
LATHE_ISA_DECLARE(void order_keys(DType type, const void* source, int64_t stride, int64_t count, KeyOrder order,
                                  void* keys))
// The greatest of them; count > 0.
LATHE_ISA_DECLARE(int64_t greatest_key(bool wide, const void* keys, int64_t count))
// The numbers of the keys that are greater than a bound, in order; how many. The bounds are of the keys' type, one for
// all of them or (`each`) one for each. At most 65536 keys.
LATHE_ISA_DECLARE(int64_t keys_above(bool wide, const void* keys, int64_t count, const void* bounds, bool each,
                                     uint16_t* numbers))
// Replaces each best key that the key is greater than (`last`: or as great as), and its position, of the key's type.
LATHE_ISA_DECLARE(void keep_greater(bool wide, const void* keys, int64_t count, int64_t position, bool last, void* best,
                                    void* positions))

}  // namespace lathe::cpu
