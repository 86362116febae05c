// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/builder.h"

namespace lathe {

// Rotary position embedding (Su et al., "RoFormer", 2021), as ONNX's RotaryEmbedding has it.
struct RotaryEmbedding {
  bool interleaved;  // pairs are neighbours, not an element of each half
  int64_t size;      // how many elements of a head turn, the first ones; even
};

// x[batch, heads, sequence, head size]; cosines and sines of the angles are [batch, sequence, size / 2].
ir::Value* rotary_embedding(ir::GraphBuilder& c, ir::Value* x, ir::Value* cosines, ir::Value* sines,
                            const RotaryEmbedding& how);

}  // namespace lathe
