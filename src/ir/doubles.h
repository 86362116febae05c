// SPDX-License-Identifier: Apache-2.0
// The plain evaluation in f64, whatever floats the network computes in: what rounding in those types is measured by.
#pragma once

#include "ir/graph.h"

namespace lathe::ir {

// The tensor, as f64 where its type is one that networks compute in. Types that tensors are only stored in stay.
Result<Tensor> as_doubles(const Tensor& tensor);

// What the node computes of operands that as_doubles() gave. Casts and dequantizations to floats round to f64; an op
// that has no f64 form computes in f32.
Result<std::vector<Tensor>> run_in_doubles(const Node& node, std::span<const Tensor> operands);

}  // namespace lathe::ir
