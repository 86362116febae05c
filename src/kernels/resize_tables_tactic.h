// SPDX-License-Identifier: Apache-2.0
// Resizing as tables: for each element along a resized dimension, the elements of the input that it is a weighted sum
// of. What the tactics of resizing share.
#pragma once

#include "tuning/tactic.h"

namespace lathe {

// Why resizing of this kind, or of dimensions that are not known, has no tables; nullopt = there are.
std::optional<std::string> refuse_resize_tables(const Problem& problem);
// The dimensions that change.
std::vector<size_t> resized_dims(const Problem& problem);
// Where the op lists a dimension.
size_t resize_position(const Problem& problem, size_t dimension);

struct ResizeTables {
  int64_t taps = 1;
  Tensor index;    // i32 [output extent, taps]
  Tensor weights;  // of the same shape; what is not needed has weight 0 and repeats an index
};
Result<ResizeTables> resize_tables(const Problem& problem, size_t dimension, DType weights = DType::f32);

}  // namespace lathe
