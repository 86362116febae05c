// SPDX-License-Identifier: Apache-2.0
// How a kernel's weights lie in the order in which it reads them, as data: boxes of elements, each copied from one set
// of strides to another, and zeros between them. What new weights are packed by when an engine is refitted.
#pragma once

#include "ops/attributes.h"

namespace lathe {

// Element (i, j, ...) of the box comes from from + i * from_strides[0] + j * from_strides[1] + ..., and goes likewise.
struct PackingBox {
  int64_t from = 0, to = 0;  // elements
  Dims extents, from_strides, to_strides;
};

struct Packing {
  Dims dims;  // of the result, which is dense
  std::vector<PackingBox> boxes;

  // Of a dense tensor, whose type the result has. Fails where a box leaves either tensor.
  Result<Tensor> apply(const Tensor& source) const;
  // One dimension more, before all others, in the boxes: `count` of them, one behind the other.
  Packing repeated(int64_t count, int64_t from_stride, int64_t to_stride) const;
};

// For files. Decoding refuses what encoding does not give.
std::vector<int64_t> to_numbers(const Packing& packing);
Result<Packing> packing_from(std::span<const int64_t> numbers);

}  // namespace lathe
