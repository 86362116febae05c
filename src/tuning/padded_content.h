// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "ops/tensor.h"

namespace lathe {

// The content of an operand with padding as the program sees it. The operand may reach beyond `dims` on any side, as
// what is padded and then cut to less does.
Result<Tensor> padded(const Tensor& content, const Dims& begin, float value, const Dims& dims);

}  // namespace lathe
