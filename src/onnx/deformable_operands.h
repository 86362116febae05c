// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compose/deformable_convolution.h"
#include "onnx/node_context.h"

namespace lathe::onnx {

// Refuses groups that do not divide what they are of, and operands of other shapes than follow from x and the weights,
// whose dimensions are known; open ones are constrained to be these. `padding_end`: behind x, as `how` says it before.
void require_operands(NodeContext& c, DeformableOperands& operands, const DeformableConvolution& how,
                      const Ints& padding_end);

}  // namespace lathe::onnx
