// SPDX-License-Identifier: Apache-2.0
// Between the order of a network's dimensions and that of memory which the application sees.
#pragma once

#include "ir/builder.h"
#include "shape/memory_format.h"

namespace lathe::api {

// `x` lies as the format says, and is a tensor of these dimensions: the same in the network's order.
ir::Value* read_memory(ir::GraphBuilder& b, ir::Value* x, const MemoryFormat& format);
// The reverse.
ir::Value* write_memory(ir::GraphBuilder& b, ir::Value* x, const MemoryFormat& format);

}  // namespace lathe::api
