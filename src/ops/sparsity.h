// SPDX-License-Identifier: Apache-2.0
// 2:4 sparse tensors: of every four neighbours along a dimension, counted from its beginning, at most two are not zero.
// Matrix units of some devices multiply them in half of the time.
#pragma once

#include <optional>

#include "ops/attributes.h"

namespace lathe {

// Of the second operand of a product or a convolution, of these dims: the dimension that is summed over, if kernels may
// read it in groups of four. Where a window has several elements, the groups are of channels, which fill them.
std::optional<size_t> summed_dim(const Attributes& attributes, const Dims& weights);

bool is_sparse(const Tensor& tensor, size_t dim);  // zeros may have a sign; elements of less than a byte are not sparse

// Of each four the two largest, and zeros for the others; of elements of whole bytes.
Result<Tensor> pruned(const Tensor& tensor, size_t dim);

}  // namespace lathe
