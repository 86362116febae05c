// SPDX-License-Identifier: Apache-2.0
// Attention of ONNX Runtime's domain, with the products in front of it, and MultiHeadAttention.
#include "onnx/heads.h"
#include "onnx/importer.h"
#include "onnx/levels.h"
#include "onnx/runtime_attention.h"

namespace lathe::onnx {
namespace {

// [batch, tokens, heads, size], after its part of a bias, as heads.
ir::Value* as_heads(NodeContext& c, ir::Value* x, const RuntimeAttention& how, ir::Value* bias) {
  if (bias) x = c.plus(x, c.reshape(bias, {how.heads, -1}));
  return c.transpose(x, {0, 2, 1, 3});
}

// Queries, keys and values of a MultiHeadAttention: one tensor for each, for keys and values, or for all; or keys and
// values that are heads already.
class Operands {
 public:
  Operands(NodeContext& c, const RuntimeAttention& how) : c_(c), how_(how) {}

  std::optional<AttentionHeads> read() {
    ir::Value *q = c_.require(0), *k = c_.input(1), *v = c_.input(2);
    if (c_.failed()) return std::nullopt;
    AttentionHeads heads{};
    if (!k && q->rank() == 5) {
      heads = {packed(q, 0, 3), packed(q, 1, 3), packed(q, 2, 3)};
    } else if (q->rank() != 3 || !k) {
      c_.invalid("the query has {} dimensions, expected 3 with a key, or 5 of packed queries, keys and values",
                 q->rank());
    } else if (k->rank() == 5) {
      heads = {by_heads(q), packed(k, 0, 2), packed(k, 1, 2)};
    } else if (k->rank() == 4) {
      heads = {by_heads(q), k, c_.require(2)};
    } else {
      heads = {by_heads(q), by_heads(k), by_heads(c_.require(2))};
    }
    if (!c_.failed() && v && ((k ? k->rank() : 0) != v->rank() || v->rank() == 5))
      c_.invalid("the value has {} dimensions, which does not go with the other inputs", v->rank());
    if (c_.failed()) return std::nullopt;
    const bool are_heads = k && k->rank() == 4;
    split_bias(heads);
    heads.q = as_heads(c_, heads.q, how_, bias_[0]);
    if (are_heads) return heads;
    heads.k = as_heads(c_, heads.k, how_, bias_[1]);
    heads.v = as_heads(c_, heads.v, how_, bias_[2]);
    return heads;
  }

 private:
  ir::Value* by_heads(ir::Value* x) { return c_.reshape(x, {0, 0, how_.heads, -1}); }

  // Part i of [batch, tokens, heads, parts, size].
  ir::Value* packed(ir::Value* x, int64_t i, int64_t parts) {
    if (c_.dim(x, 2) != Expr(how_.heads) || c_.dim(x, 3) != Expr(parts))
      c_.invalid("a packed input has the shape {}, expected [batch, tokens, {}, {}, size]", to_string(x->shape()),
                 how_.heads, parts);
    return c_.squeeze(c_.slice(x, 3, i, i + 1), {3});
  }

  void split_bias(const AttentionHeads& heads) {
    ir::Value* bias = c_.input(3);
    if (!bias) return;
    const std::optional<int64_t> size = c_.dim(heads.q, 3).as_constant();
    if (bias->rank() != 1 || !size)
      return c_.unsupported("the bias must have one dimension, and heads a size that is known");
    const int64_t hidden = how_.heads * *size;
    bias_[0] = c_.slice(bias, 0, 0, hidden);
    bias_[1] = c_.slice(bias, 0, hidden, 2 * hidden);
    bias_[2] = c_.slice(bias, 0, 2 * hidden, INT64_MAX);
  }

  NodeContext& c_;
  const RuntimeAttention& how_;
  ir::Value* bias_[3] = {};
};

// What is said of the products that are queries, keys and values, and the inputs that go with them.
struct Projection {
  ir::Value *x, *weights, *bias;
  size_t mask, past, scores_bias;
};

// The parts of x * weights + bias along their last dimension, of the sizes that the node says.
std::optional<AttentionHeads> projected(NodeContext& c, const RuntimeAttention& how, const Projection& from) {
  if (c.failed()) return std::nullopt;
  const std::optional<int64_t> columns = c.dim(from.weights, 1).as_constant();
  if (from.x->rank() != 3 || from.weights->rank() != 2)
    c.invalid("the input has {} dimensions and the weights {}, expected 3 and 2", from.x->rank(), from.weights->rank());
  else if (!columns)
    c.unsupported("the number of columns of the weights must be known");
  if (c.failed()) return std::nullopt;
  const Ints sizes = c.integers("qkv_hidden_sizes", Ints(3, *columns / 3));
  if (sizes.size() != 3 || sizes[0] != sizes[1] || sizes[0] + sizes[1] + sizes[2] != *columns ||
      sizes[0] % how.heads != 0 || sizes[2] % how.heads != 0) {
    c.invalid("the weights have {} columns, which are not those of queries, keys (as many) and values of {} heads{}",
              *columns, how.heads, c.has_attribute("qkv_hidden_sizes") ? " by qkv_hidden_sizes" : "");
    return std::nullopt;
  }
  ir::Value* all = c.matmul(from.x, from.weights);
  if (from.bias) all = c.plus(c.cast(all, from.bias->dtype()), from.bias);
  const auto part = [&](int64_t begin, int64_t size) {
    return split_heads(c, c.slice(all, 2, begin, begin + size), how.heads);
  };
  return AttentionHeads{part(0, sizes[0]), part(sizes[0], sizes[1]), part(sizes[0] + sizes[1], sizes[2])};
}

void attend_to_projection(NodeContext& c, RuntimeAttention how, const Projection& from) {
  if (c.flag("do_rotary", false) || c.has_attribute("rotary_embedding_dim"))
    return c.unsupported("do_rotary is not supported; use RotaryEmbedding and MultiHeadAttention");
  if (c.flag("past_present_share_buffer", false))
    return c.unsupported(
        "past_present_share_buffer is not supported; give a past of the tokens before, or use GroupQueryAttention");
  std::optional<AttentionHeads> of = projected(c, how, from);
  if (!of) return;
  ir::Value* before = nullptr;
  if (ir::Value* past = c.input(from.past)) {  // keys and values, one behind the other
    if (past->rank() != 5) return c.invalid("past has {} dimensions, expected 5", past->rank());
    const auto part = [&](int64_t i) { return c.squeeze(c.slice(past, 0, i, i + 1), {0}); };
    of->k = c.concat({part(0), of->k}, 2), of->v = c.concat({part(1), of->v}, 2);
    before = c.shape_of(past, 3, 4);
  }
  if (c.failed()) return;
  if (c.wants(1)) c.set_output(1, c.concat({c.unsqueeze(of->k, {0}), c.unsqueeze(of->v, {0})}, 0));
  if (how.causal && c.has(from.mask) && c.input(from.mask)->rank() == 4)
    return c.invalid("mask_index of 4 dimensions does not go with unidirectional");
  how.visible = visible_keys_of(c, from.mask, "mask_index", *of, before);
  how.bias = c.input(from.scores_bias);
  c.set_output(0, attended(c, *of, how));
}

}  // namespace

void import_multi_head_attention(NodeContext& c) {
  std::optional<RuntimeAttention> how = runtime_attention(c);
  if (!how) return;
  if (c.has(6) != c.has(7)) return c.invalid("past_key and past_value are given together or not at all");
  for (const size_t i : {8, 9})
    if (c.has(i))
      return c.unsupported("{} is not supported: caches that are shared with outputs are GroupQueryAttention's",
                           i == 8 ? "past_sequence_length" : "cache_indirection");
  std::optional<AttentionHeads> of = Operands(c, *how).read();
  if (!of) return;
  if (how->causal) {
    ir::Value* as_queries = c.concat({c.shape_of(of->k, 0, 2), c.shape_of(of->q, 2, 3), c.shape_of(of->k, 3)}, 0);
    of->k = c.require_shape("the keys with unidirectional", of->k, as_queries, "as many as queries");
  }
  if (c.has(6)) of->k = c.concat({c.input(6), of->k}, 2), of->v = c.concat({c.input(7), of->v}, 2);
  if (c.failed()) return;
  if (c.wants(1)) c.pass_on(1, to_slot(of->k));
  if (c.wants(2)) c.pass_on(2, to_slot(of->v));
  if (c.has(4) && c.input(4)->rank() == 4) return c.invalid("key_padding_mask has 4 dimensions, expected 1 to 3");
  how->visible = visible_keys_of(c, 4, "key_padding_mask", *of, nullptr);
  how->bias = c.input(5);
  how->scores = 3;
  c.set_output(0, attended(c, *of, *how));
}

void import_projected_attention(NodeContext& c) {
  const std::optional<RuntimeAttention> how = runtime_attention(c);
  if (!how) return;
  if (c.has(6)) return c.unsupported("past_sequence_length is not supported; give a past of the tokens before");
  attend_to_projection(c, *how, {c.require(0), c.require(1), c.input(2), 3, 4, 5});
}

// Its product is one of integers.
void import_quantized_attention(NodeContext& c) {
  const std::optional<RuntimeAttention> how = runtime_attention(c);
  if (!how) return;
  constexpr size_t kNone = SIZE_MAX;
  ir::Value *x = dequantized(c, {0, 3, 6}), *weights = dequantized(c, {1, 4, 7}, 1);
  attend_to_projection(c, *how, {x, weights, c.require(2), 5, 8, kNone});
}

}  // namespace lathe::onnx
