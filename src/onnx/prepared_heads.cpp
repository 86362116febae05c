// SPDX-License-Identifier: Apache-2.0
#include "onnx/prepared_heads.h"

#include "compose/rotary_embedding.h"

namespace lathe::onnx {

PreparedHeads::PreparedHeads(NodeContext& c, const Inputs& inputs) : c_(c), inputs_(inputs) {
  turns_ = c.flag("do_rotary", false), interleaved_ = c.flag("rotary_interleaved", false);
  epsilon_ = c.real("qk_norm_epsilon", 1e-6F);
  if (c.has(inputs.cosines) != c.has(inputs.sines))
    c.invalid("cos_cache and sin_cache are given together or not at all");
  if (c.has(inputs.query_norm) != c.has(inputs.key_norm))
    c.invalid("q_norm_weight and k_norm_weight are given together or not at all");
  if (turns_ && !c.has(inputs.cosines)) c.invalid("do_rotary needs cos_cache and sin_cache");
}

ir::Value* PreparedHeads::prepared(ir::Value* x, size_t norm, ir::Value* places) {
  if (ir::Value* scale = c_.input(norm)) {
    RmsNormalizationAttrs attributes;
    attributes.epsilon = epsilon_;
    x = c_.add(attributes, {x, scale});
  }
  if (!turns_) return x;
  ir::Value *cosines = c_.input(inputs_.cosines), *sines = c_.input(inputs_.sines);
  const std::optional<int64_t> half = c_.dim(cosines, 1).as_constant(), size = c_.dim(x, 3).as_constant();
  if (!half || cosines->rank() != 2 || 2 * *half > size.value_or(0)) {
    c_.unsupported("cos_cache must have two dimensions, the last one known and at most half of {}", size.value_or(0));
    return x;
  }
  return rotary_embedding(c_, x, c_.gather(cosines, places, 0), c_.gather(sines, places, 0), {interleaved_, 2 * *half});
}

}  // namespace lathe::onnx
