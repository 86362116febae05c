// SPDX-License-Identifier: Apache-2.0
// From indices to offsets in a table, a row of indices at a time.
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
  int64_t step, count;     // from index to index; how many
  int64_t extent, stride;  // of the table's axis
};

// An index from -extent to extent - 1 lies inside; negative ones count from the end.

// to[i * to_step] = from[i * along + index i * row.stride], of elements of `size` bytes. Returns false when an index
// lies outside; nothing is read for that one, and what was written is of no use.
LATHE_ISA_DECLARE(bool take_elements(const IndexRow& row, size_t size, const void* from, int64_t along, void* to,
                                     int64_t to_step))
// offsets[i] += index i * row.stride. Returns false when an index lies outside; the offsets are of no use then.
LATHE_ISA_DECLARE(bool add_offsets(const IndexRow& row, int64_t* offsets))

}  // namespace lathe::cpu
