// SPDX-License-Identifier: Apache-2.0
#include "compose/rotary_embedding.h"

namespace lathe {

// Pairs (x1, x2) turn by an angle: (cos x1 - sin x2, cos x2 + sin x1). Both at once, so that they are one step: the
// pairs times the cosine, and the pairs backwards times the sine, whose sign alternates.
ir::Value* rotary_embedding(ir::GraphBuilder& c, ir::Value* x, ir::Value* cosines, ir::Value* sines,
                            const RotaryEmbedding& how) {
  const int64_t pair = how.interleaved ? 4 : 3;  // the axis of two
  const bool is_whole = x->shape()[3] == Expr(how.size);
  ir::Value* part = is_whole ? x : c.slice(x, 3, 0, how.size);
  ir::Value* pairs = how.interleaved ? c.reshape(part, {0, 0, 0, -1, 2}) : c.reshape(part, {0, 0, 0, 2, -1});
  ir::Value* backwards = c.add(SliceAttrs{}, {pairs, c.ints({-1}), c.ints({INT64_MIN}), c.ints({pair}), c.ints({-1})});
  const auto sign = [&](double value) { return c.unsqueeze(c.scalar_like(value, x), {0}); };
  ir::Value* signs = c.concat({sign(-1), sign(1)}, 0);
  if (!how.interleaved) signs = c.unsqueeze(signs, {1});
  cosines = c.unsqueeze(cosines, {1, pair}), sines = c.unsqueeze(sines, {1, pair});
  ir::Value* turned = c.plus(c.mul(pairs, cosines), c.mul(backwards, c.mul(sines, signs)));
  ir::Value* result = c.reshape(turned, c.shape_of(part), true);
  return is_whole ? result : c.concat({result, c.slice(x, 3, how.size, INT64_MAX)}, 3);
}

}  // namespace lathe
