// SPDX-License-Identifier: Apache-2.0
// Sums of products of integers that become floats by several ops do so by one dequantisation, which belongs to the
// product. Scales and zero points of dynamic quantisation are computed.
#pragma once

#include "passes/rewrite.h"

namespace lathe {

// cast(sums - z) * s
Result<bool> dequantize_sums(Rewrite& r);
// dequantize(sums - y, s, z)
Result<bool> join_zero_points(Rewrite& r);

}  // namespace lathe
