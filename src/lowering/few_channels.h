// SPDX-License-Identifier: Apache-2.0
// Convolutions of images of few channels, as networks begin with.
#pragma once

#include "ir/graph.h"
#include "tuning/backend_traits.h"

namespace lathe {

inline constexpr int64_t kFewChannels = 4;

// Whether the node is a convolution, without groups, of an image of few channels.
bool has_few_channels(const ir::Node& node);

// Whether it is one whose kernels gather the pixels of many windows at once (BackendTraits::most_gathered_window): from
// planes, too, and what computes them may be a part of it.
bool gathers_pixels(const ir::Node& node, const BackendTraits& traits);

}  // namespace lathe
