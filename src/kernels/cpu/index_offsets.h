// SPDX-License-Identifier: Apache-2.0
// Offsets that indices name.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu {

// A row of indices along one axis of a table.
struct IndexRow {
  DType type;  // any integer; u64 is read as i64
  const void* first;
  int64_t step, count;
  int64_t extent, stride;  // of the axis
};

// to[i * to_step] = from[i * along + offset of index i], elements of so many bytes; false when an index lies outside,
// which is not read.
LATHE_ISA_DECLARE(bool take_elements(const IndexRow& row, size_t size, const void* from, int64_t along, void* to,
                                     int64_t to_step))
// Adds to each offset what its index makes; false when one of them lies outside.
LATHE_ISA_DECLARE(bool add_offsets(const IndexRow& row, int64_t* offsets))

}  // namespace lathe::cpu
