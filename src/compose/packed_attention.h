// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compose/attention.h"
#include "compose/packed_tokens.h"

namespace lathe {

// Of packed tokens, which may be their numbers alone, [tokens]: the place of each in its sequence, as i64[tokens]; 0
// behind the last sequence.
ir::Value* packed_positions(ir::GraphBuilder& c, const TokenSource& source);

// attention() of queries in one form and keys and values in another; at least one of them is packed. The result has the
// form of the queries, and is 0 where a query sees no key, as tokens behind the last sequence do.
ir::Value* packed_attention(ir::GraphBuilder& c, TokenSource q, TokenSource k, ir::Value* v, CausalMask mask,
                            const Attention& how);

}  // namespace lathe
