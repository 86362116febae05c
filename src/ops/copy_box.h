// SPDX-License-Identifier: Apache-2.0
// Copies between strided layouts: the one loop behind transpose, slice, concat, expand and their kin.
#pragma once

#include "base/for_size.h"
#include "ops/op.h"

namespace lathe {

// Copies the elements (of `size` bytes: 1, 2, 4 or 8) of an index space of `dims` from one layout to another. Strides
// count elements and may be 0 or negative on the source side.
void copy_box(size_t size, std::span<const int64_t> dims, const void* source, std::span<const int64_t> source_strides,
              void* target, std::span<const int64_t> target_strides);

// One element repeated `count` times.
void fill_elements(size_t size, const void* value, void* target, int64_t count);

// Evaluation of the ops that keep the elements and their order (trait kView).
Result<> eval_view(EvalContext& context);

}  // namespace lathe
