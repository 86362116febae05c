// SPDX-License-Identifier: Apache-2.0
// The attributes of a convolution with defaults filled in and SAME padding resolved.
#pragma once

#include <optional>
#include <string>

#include "kernels/cpu/conv/conv.h"
#include "tuning/tactic.h"

namespace lathe::cpu {

using ConvAttributes = conv::ConvShape;

// A reason in words when they cannot be resolved while building.
std::optional<std::string> resolve(const Problem& problem, ConvAttributes& out);
// For kernels that resolve SAME padding themselves; refused when the convolution has more dimensions than they know.
tl::expected<conv::ConvShape, Refusal> conv_shape(const Problem& problem);
conv::ConvProblem conv_problem(const Problem& problem, const conv::ConvShape& shape);

}  // namespace lathe::cpu
