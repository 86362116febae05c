// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compose/attention.h"

namespace lathe {

// Tokens of several sequences: padded, [batch, heads, tokens, size], or packed end to end, [tokens, heads, size].
// `starts` of packed ones is the place of each sequence's first token and, behind the last sequence, where its tokens
// end.
struct TokenSource {
  ir::Value* tokens;
  ir::Value* starts = nullptr;  // null = padded
};

// Of packed tokens, which may be their numbers alone, [tokens]: the place of each in its sequence, as i64[tokens]; 0
// behind the last sequence.
ir::Value* packed_positions(ir::GraphBuilder& c, const TokenSource& source);

// attention() of queries in one form and keys and values in another; at least one of them is packed. The result has the
// form of the queries, and is 0 where a query sees no key, as tokens behind the last sequence do.
ir::Value* packed_attention(ir::GraphBuilder& c, TokenSource q, TokenSource k, ir::Value* v, CausalMask mask,
                            const Attention& how);

}  // namespace lathe
