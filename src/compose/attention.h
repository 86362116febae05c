// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ir/builder.h"

namespace lathe {

// What a query does with the scores of the keys.
struct Attention {
  bool normalizes = true;              // by a softmax; otherwise the scores themselves weigh the values
  std::optional<DType> weights_type;   // to whose levels the weights are rounded
  ir::Value* weights_scale = nullptr;  // of those levels: one value
};

enum class CausalMask {
  none,
  upper_left,   // query i sees the keys 0 to i
  lower_right,  // the last query sees all keys, each one before it a key less
};

// x's heads [batch, heads, rows, size], each repeated until there are `heads`, a multiple of theirs; both are known.
ir::Value* repeat_heads(ir::GraphBuilder& c, ir::Value* x, int64_t heads);

// Where a query [batch, heads, queries, size] sees a key, [queries, keys] as booleans; null for CausalMask::none.
ir::Value* visible_keys(ir::GraphBuilder& c, ir::Value* q, ir::Value* k, CausalMask mask);

// y[b,hq,s,dv] of q[b,hq,s,d], k[b,h,t,d] and v[b,h,t,dv]; each head of k and v serves hq / h heads of q, and unless hq
// is h, both are known. The mask broadcasts to [b,hq,s,t]: booleans, where false hides a key, or what is added to the
// scores; null = none. A hidden key has no weight.
ir::Value* attention(ir::GraphBuilder& c, ir::Value* q, ir::Value* k, ir::Value* v, ir::Value* mask,
                     const Attention& how);

}  // namespace lathe
