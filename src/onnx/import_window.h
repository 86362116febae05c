// SPDX-License-Identifier: Apache-2.0
// Attributes that convolutions and poolings share.
#pragma once

#include "onnx/node_context.h"

namespace lathe::onnx {

struct WindowAttributes {
  Ints stride, dilation, pads_begin, pads_end;
  PaddingMode mode = PaddingMode::explicit_round_down;
};

// Reads strides, dilations, pads, auto_pad and ceil_mode for `spatial` axes; lists come back complete.
WindowAttributes read_window(NodeContext& c, int64_t spatial);

DeconvolutionAttrs deconvolution_attributes(NodeContext& c, const ir::Value* x, const ir::Value* w);

// Of a pooling of x; nothing after an error.
std::optional<PoolingAttrs> pooling_attributes(NodeContext& c, const ir::Value* x, PoolingOp op);

}  // namespace lathe::onnx
