// SPDX-License-Identifier: Apache-2.0
// Keys or values of several sequences in blocks of one pool, [blocks, block size, heads, size]. A table [sequences, n]
// has the numbers of each sequence's blocks, in their order.
#pragma once

#include "ir/builder.h"

namespace lathe {

// The pool with rows[tokens, heads, size] at slots[tokens, 2], each of which is a block and a place there.
inline ir::Value* write_to_blocks(ir::GraphBuilder& c, ir::Value* pool, ir::Value* rows, ir::Value* slots) {
  return c.add(ScatterNdAttrs{}, {pool, slots, rows});
}

// [sequences, heads, n * block size, size]
inline ir::Value* read_blocks(ir::GraphBuilder& c, ir::Value* pool, ir::Value* table) {
  ir::Value* keys = c.mul(c.shape_of(table, 1, 2), c.shape_of(pool, 1, 2));
  ir::Value* dims = c.concat({c.shape_of(table, 0, 1), keys, c.shape_of(pool, 2)}, 0);
  return c.transpose(c.reshape(c.gather(pool, table, 0), dims, true), {0, 2, 1, 3});
}

}  // namespace lathe
