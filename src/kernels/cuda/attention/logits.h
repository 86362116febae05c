// SPDX-License-Identifier: Apache-2.0
// What the tactics of attention ask of a problem and write of it alike.
#pragma once

#include "kernels/cuda/source.h"

namespace lathe::cuda {

inline constexpr size_t kMaskInput = 3;

// Heads that lie in another order are read by strides. Why that cannot be.
std::optional<std::string> refuse_order(const Problem& problem);

// Declares the mask, if there is one, which becomes the emission's next input; gives the object of logits.cuh. The
// tensors are Q_ and K_.
std::string declare_logits(Source& source, const Problem& problem, Emission& emission);

}  // namespace lathe::cuda
