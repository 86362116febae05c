// SPDX-License-Identifier: Apache-2.0
// What grouping asks about nodes around products of 8-bit integers, and others that make levels.
#pragma once

#include "lowering/region.h"

namespace lathe {

// Whether its kernels of floats make levels of their results.
bool gives_levels(const ir::Node& node);

// Whether it dequantises levels of one scale for sums of windows alone, whose kernels can do so.
bool dequantizes_for_windows(const ir::Node& node);
// What such a node computes.
std::optional<Region> window_levels(ir::Node& dequantize, const NodeOrder& order);

// Quantises or dequantises levels of 8 bits, or the sums of such, and floats that kernels have where there are no
// narrow types.
bool has_small_levels(const ir::Node& node);

// Dequantises sums by zero points of i32, known or computed.
bool dequantizes_sums(const ir::Node& node);

// What makes such a zero point: a product, as that of sums of rows by zero points of columns, a sum, or a product's sum
// with something. Kernels compute it as they take it off. Empty where it is made otherwise, or by nodes that are not
// free.
std::vector<ir::Node*> zero_point_terms(const ir::Node& dequantize, const MayJoin& is_free);

// What dequantises the other operand of a node for it alone, and converts it: a region reads integers in place of
// floats.
std::vector<ir::Node*> dequantized_operand(const ir::Node& node, const ir::Value* result, const MayJoin& is_free);

}  // namespace lathe
