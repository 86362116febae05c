// SPDX-License-Identifier: Apache-2.0
// Queries and keys of attention operators of ONNX Runtime whose heads are normalised and turned before they meet.
#pragma once

#include "onnx/node_context.h"

namespace lathe::onnx {

class PreparedHeads {
 public:
  // Numbers of the node's inputs.
  struct Inputs {
    size_t cosines, sines, query_norm, key_norm;
  };
  // Reads the attributes do_rotary, rotary_interleaved and qk_norm_epsilon, and refuses inputs that lack others.
  PreparedHeads(NodeContext& c, const Inputs& inputs);

  bool turns() const { return turns_; }
  // Heads x[batch, heads, tokens, size] whose tokens are at `places`[batch, tokens] of their sequences.
  ir::Value* queries(ir::Value* x, ir::Value* places) { return prepared(x, inputs_.query_norm, places); }
  ir::Value* keys(ir::Value* x, ir::Value* places) { return prepared(x, inputs_.key_norm, places); }

 private:
  ir::Value* prepared(ir::Value* x, size_t norm, ir::Value* places);

  NodeContext& c_;
  const Inputs inputs_;
  bool turns_ = false, interleaved_ = false;
  double epsilon_ = 0;
};

}  // namespace lathe::onnx
