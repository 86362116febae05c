// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "onnx/node_context.h"

namespace lathe::onnx {

// Softmax, or what else of its kind the node is, of x along the node's axis: as the default operator set has it at that
// version.
ir::Value* softmax_of(NodeContext& c, ir::Value* x, int64_t version);

}  // namespace lathe::onnx
