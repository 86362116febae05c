// SPDX-License-Identifier: Apache-2.0
#include "compose/rotary_embedding.h"

namespace lathe {

// Pairs (x1, x2) turn by an angle: (cos x1 - sin x2, sin x1 + cos x2).
ir::Value* rotary_embedding(ir::GraphBuilder& c, ir::Value* x, ir::Value* cosines, ir::Value* sines,
                            const RotaryEmbedding& how) {
  cosines = c.unsqueeze(cosines, {1}), sines = c.unsqueeze(sines, {1});
  ir::Value* part = c.slice(x, 3, 0, how.size);
  ir::Value *x1 = nullptr, *x2 = nullptr;
  if (how.interleaved) {
    const auto every_other = [&](int64_t first) {
      return c.add(SliceAttrs{}, {part, c.ints({first}), c.ints({how.size}), c.ints({3}), c.ints({2})});
    };
    x1 = every_other(0), x2 = every_other(1);
  } else {
    x1 = c.slice(part, 3, 0, how.size / 2), x2 = c.slice(part, 3, how.size / 2, how.size);
  }
  ir::Value* real = c.minus(c.mul(cosines, x1), c.mul(sines, x2));
  ir::Value* imaginary = c.plus(c.mul(sines, x1), c.mul(cosines, x2));
  ir::Value* result = how.interleaved ? c.reshape(c.concat({c.unsqueeze(real, {4}), c.unsqueeze(imaginary, {4})}, 4),
                                                  c.shape_of(part), true)
                                      : c.concat({real, imaginary}, 3);
  return x->shape()[3] == Expr(how.size) ? result : c.concat({result, c.slice(x, 3, how.size, INT64_MAX)}, 3);
}

}  // namespace lathe
