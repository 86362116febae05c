// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tensor.h"

namespace lathe::cuda::conv {

// Weights [O, C, taps...] as rows of taps and, innermost, `padded` channels; rows are padded to 16 bytes. Zeros fill.
Result<Tensor> pack_weights(const Tensor& weights, int64_t padded);

}  // namespace lathe::cuda::conv
