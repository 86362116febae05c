// SPDX-License-Identifier: Apache-2.0
// What attention operators of ONNX Runtime share.
#pragma once

#include <string_view>

#include "onnx/node_context.h"

namespace lathe::onnx {

// Heads [batch, heads, tokens, size] of queries, and of all keys and values.
struct AttentionHeads {
  ir::Value *q, *k, *v;
};

// Operators whose heads of keys are shared by several of queries.
struct GroupedHeads {
  int64_t of_queries = 0, of_keys = 0;
  AttentionAttrs attributes;  // as far as the operators have them alike: scale, 0 until heads are read, and softcap
};
GroupedHeads read_grouped_heads(NodeContext& c);
// Heads of rows [batch, tokens, size] that lie next to each other: those of keys and values lie behind those of queries
// where `rows` has no keys and values (null). A scale of 0 becomes the inverse root of their size. nullopt after an
// error.
std::optional<AttentionHeads> read_heads_of(NodeContext& c, const AttentionHeads& rows, GroupedHeads& grouped);

struct RuntimeAttention {
  int64_t heads = 0;
  double scale = 0;              // 0 = the inverse root of the head size
  double filter = -10000;        // what is added to the scores of hidden keys
  bool causal = false;           // the last query sees all keys, each one before it a key less
  size_t scores = SIZE_MAX;      // the output that has the scores under the mask
  ir::Value* visible = nullptr;  // keys, as booleans that broadcast to the scores; null = all
  ir::Value* bias = nullptr;     // what is added to the scores; null = nothing
};

// The attributes num_heads, scale, mask_filter_value and unidirectional; nullopt after an error.
std::optional<RuntimeAttention> runtime_attention(NodeContext& c);

// The keys that input `input`, called `name`, lets queries see, null where it lets them see all. It has an end of each
// sequence, also a start, or says it of each key, for each query or of the queries that follow `past` others.
ir::Value* visible_keys_of(NodeContext& c, size_t input, std::string_view name, const AttentionHeads& of,
                           ir::Value* past);

// [batch, queries, heads * size]: what the queries see. Sets output how.scores, too, where it is wanted.
ir::Value* attended(NodeContext& c, const AttentionHeads& of, const RuntimeAttention& how);

}  // namespace lathe::onnx
