// SPDX-License-Identifier: Apache-2.0
// Copies between strided layouts: the one loop behind transpose, slice, concat, expand and their kin.
#pragma once

#include "ops/op.h"

namespace lathe {

// Copies the elements (of `size` bytes: 1, 2, 4 or 8) of an index space of `dims` from one layout to another. Strides
// count elements and may be 0 or negative on the source side.
void copy_box(size_t size, std::span<const int64_t> dims, const void* source, std::span<const int64_t> source_strides,
              void* target, std::span<const int64_t> target_strides);

// Calls f with an unsigned value of `size` bytes, the storage that moves elements of any type.
template <class F>
void for_size(size_t size, F&& f) {
  switch (size) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

// One element repeated `count` times.
void fill_elements(size_t size, const void* value, void* target, int64_t count);

// Evaluation of the ops that keep the elements and their order (trait kView).
Result<> eval_view(EvalContext& context);

}  // namespace lathe
