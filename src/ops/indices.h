// SPDX-License-Identifier: Apache-2.0
// Indices of the gather and scatter ops.
#pragma once

#include "ops/op.h"

namespace lathe {

// Of gather_elements and scatter_elements: indices (input 1) are at most as long as data (input 0) on every other axis.
Result<> check_reach(InferContext& context, int64_t axis, std::string_view op);

// All values of an index tensor, negative ones counted from the end of an axis of `extent`; an error names a value
// that lies outside.
Result<Ints> read_indices(const Tensor& indices, int64_t extent, std::string_view op);

// Offsets of the elements (along_axis) or sub-tensors (tuples) of `data` that an index tensor names, one per index.
// along_axis: index [i, j, k] names data[i, indices[i, j, k], k] for axis 1.
Result<Ints> offsets_along_axis(const Tensor& data, const Tensor& indices, int64_t axis, std::string_view op);
// tuples: the last axis of `indices` spells a position in data's axes after the first `batch_dims`, which both share.
struct TupleOffsets {
  Ints offsets;     // in elements
  int64_t run = 1;  // elements in each sub-tensor
};
Result<TupleOffsets> offsets_of_tuples(const Tensor& data, const Tensor& indices, int64_t batch_dims,
                                       std::string_view op);

// Combines updates into output: sub-tensor i of `run` elements goes to offsets[i]. With no reduction the last wins;
// others take repeated offsets in order, 16-bit floats accumulating in f32.
void scatter(ScatterReduction reduction, const Tensor& updates, const Ints& offsets, int64_t run, Tensor& output);

}  // namespace lathe
