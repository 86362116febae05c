// SPDX-License-Identifier: Apache-2.0
#include "compose/count_up.h"
#include "compose/rotary_embedding.h"
#include "onnx/heads.h"
#include "onnx/importer.h"
#include "onnx/plugin_dims.h"

namespace lathe::onnx {

// ONNX Runtime's, which takes positions first: of each token, or the first one of all sequences.
void import_cached_rotary_embedding(NodeContext& c) {
  const bool interleaved = c.flag("interleaved", false);
  const int64_t heads = c.integer("num_heads", 0), turned = c.integer("rotary_embedding_dim", 0);
  c.ignore({"is_packed_batching"});  // a check less, of how many positions there may be
  ir::Value *input = c.require(0), *positions = c.require(1), *cosines = c.require(2), *sines = c.require(3);
  if (c.failed()) return;
  if (input->rank() != 3 && input->rank() != 4) return c.invalid("the input must have rank 3 or 4");
  require_rank(c, 2, cosines, "positions, size / 2");
  require_rank(c, 3, sines, "positions, size / 2");
  if (positions->rank() > 2) return c.invalid("position_ids has {} dimensions, expected 0 to 2", positions->rank());
  if (turned > 0 && heads < 1) return c.invalid("rotary_embedding_dim needs num_heads");
  if (c.has_attribute("scale") && c.real("scale", 1) != 1)
    return c.unsupported("scale is {}, which ONNX Runtime does not apply; remove it", c.real("scale", 1));
  const std::optional<int64_t> half = c.dim(cosines, 1).as_constant();
  if (c.failed()) return;
  if (!half) return c.unsupported("the size of rows of cos_cache must be known");
  if (turned > 0 && turned != 2 * *half)
    return c.invalid("rotary_embedding_dim is {}, but cos_cache has rows of {}, expected {}", turned, *half,
                     turned / 2);
  ir::Value* x = input->rank() == 4 ? input
                 : heads > 0        ? split_heads(c, input, heads)
                                    : c.transpose(c.reshape(input, {0, 0, -1, 2 * *half}), {0, 2, 1, 3});
  if (positions->rank() < 2)
    positions = c.unsqueeze(c.plus(c.reshape(positions, {1}), count_up(c, c.shape_of(x, 2, 3))), {0});
  ir::Value* result =
      rotary_embedding(c, x, c.gather(cosines, positions, 0), c.gather(sines, positions, 0), {interleaved, 2 * *half});
  c.set_output(0, input->rank() == 3 ? merge_heads(c, result) : result);
}

}  // namespace lathe::onnx
