// SPDX-License-Identifier: Apache-2.0
// Convolutions as the kernels of CPUs are asked for them; they resolve SAME padding themselves.
#pragma once

#include "kernels/cpu/conv/conv.h"
#include "tuning/tactic.h"

namespace lathe::cpu {

// Refused when the convolution has more dimensions than the kernels know.
tl::expected<ConvShape, Refusal> conv_shape(const Problem& problem);
conv::ConvProblem conv_problem(const Problem& problem, const ConvShape& shape);

}  // namespace lathe::cpu
