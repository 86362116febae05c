// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tensor.h"

namespace lathe {

// [batch, heads, keys, size] of a dense pool of blocks and a table of them, as Operand::pages says.
Result<Tensor> in_order(const Tensor& pool, const Tensor& table, const Dims& dims);

}  // namespace lathe
