// SPDX-License-Identifier: Apache-2.0
#include "compose/cache_update.h"

#include "compose/count_up.h"

namespace lathe {

// Each row of the cache takes its token, or stays: a row of zeros behind the tokens is what the latter read.
ir::Value* write_packed_rows(ir::GraphBuilder& c, ir::Value* cache, ir::Value* update, ir::Value* first,
                             ir::Value* starts) {
  starts = c.cast(starts, DType::i64);
  ir::Value *begin = c.unsqueeze(c.slice(starts, 0, 0, -1), {1}),
            *end = c.unsqueeze(c.slice(starts, 0, 1, INT64_MAX), {1});
  ir::Value* rows = c.minus(count_up(c, c.shape_of(cache, 2, 3)), c.unsqueeze(c.cast(first, DType::i64), {1}));
  ir::Value* tokens = c.plus(rows, begin);  // [batch, rows]
  ir::Value* written = c.binary(ElementwiseOp::logical_and, c.binary(ElementwiseOp::greater_equal, rows, 0.0),
                                c.binary(ElementwiseOp::less, tokens, end));
  ir::Value* count = c.shape_of(update, 0, 1);
  ir::Value* none = c.expand(c.scalar_like(0, update), c.concat({c.ints({1}), c.shape_of(update, 1)}, 0));
  ir::Value* taken = c.gather(c.concat({update, none}, 0), c.select(written, tokens, count), 0);
  return c.select(c.unsqueeze(written, {1, 3}), c.transpose(taken, {0, 2, 1, 3}), cache);
}

}  // namespace lathe
