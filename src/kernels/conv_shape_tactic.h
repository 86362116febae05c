// SPDX-License-Identifier: Apache-2.0
// The shape of a convolution from the op's attributes, with defaults filled in.
#pragma once

#include <optional>
#include <string>

#include "kernels/conv_shape.h"
#include "tuning/tactic.h"

namespace lathe {

// Each returns a reason in words when the shape cannot be told while building, or has more dimensions than there are in
// it. SAME padding stays a rule in the first, and is resolved by the second.
std::optional<std::string> read_conv_shape(const Problem& problem, ConvShape& out);
std::optional<std::string> resolve_conv_shape(const Problem& problem, ConvShape& out);
// Of a transposed convolution; padding that follows from the output's extents is resolved.
std::optional<std::string> resolve_deconv_shape(const Problem& problem, ConvShape& out);

}  // namespace lathe
