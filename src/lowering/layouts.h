// SPDX-License-Identifier: Apache-2.0
// In which layout each value of image rank lies: the assignment that costs least (lowering/layout_costs.h).
// A copy costs what it reads and writes. An operand that is contiguous along another axis than the result costs less
// than that, for kernels read it through tiles or with strides. What kernels cannot write is out of the question.
#pragma once

#include "lowering/layout_costs.h"
#include "lowering/region.h"

namespace lathe {

// The costs of all regions, solved.
LayoutCosts assign_layouts(const ir::Graph& graph, const std::vector<Region>& regions, const BackendTraits& traits,
                           const CostModel& model);

// Channels in dimension 1 and 1 to 3 dimensions of pixels: such values have layouts.
bool has_image_rank(const ir::Value* value);

// Whether a convolution reads the few channels of its input as planes, as a network's input comes. A device that would
// rather have pixels of a certain size does where it gathers them for many windows at once.
bool reads_planes(const Region& region, const BackendTraits& traits);

// Whether the node pads bytes for a convolution: that is copies, each in whatever layout, and not a kernel of its own.
bool is_padded_by_copies(const ir::Node& node);

// Whether a region of this result is written with room for `least_pixel` channels in each pixel, as the convolution
// that alone reads it wants, unless it gathers pixels: an image of few channels, such as a network's input in another
// type.
bool is_widened_image(const Region& region, const BackendTraits& traits);

}  // namespace lathe
