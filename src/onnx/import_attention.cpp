// SPDX-License-Identifier: Apache-2.0
// Attention and what goes with it, composed of matrix products and a softmax; passes fuse the pattern again.
#include <cmath>

#include "compose/attention.h"
#include "compose/cache_update.h"
#include "compose/count_up.h"
#include "compose/rotary_embedding.h"
#include "onnx/heads.h"
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

constexpr double kMinusInfinity = -HUGE_VAL;

// Each head of k or v serves as many heads of q as it takes.
ir::Value* repeat_for(NodeContext& c, ir::Value* x, const ir::Value* q) {
  if (c.failed() || c.dim(x, 1) == c.dim(q, 1)) return x;
  const std::optional<int64_t> have = c.dim(x, 1).as_constant(), need = c.dim(q, 1).as_constant();
  if (!have || !need || *have == 0 || *need % *have != 0) {
    if (!have || !need)
      c.unsupported("the number of heads of Q must be a known multiple of that of K and V");
    else
      c.invalid("the number of heads of Q, {}, must be a multiple of that of K and V, {}", *need, *have);
    return x;
  }
  return lathe::repeat_heads(c, x, *need);
}

// A mask may end before the last key: what is missing is masked.
ir::Value* pad_mask(NodeContext& c, ir::Value* mask, ir::Value* keys) {
  if (c.failed() || c.dim(mask, mask->rank() - 1) == c.dim(keys, 2)) return mask;
  ir::Value* missing = c.minus(c.shape_of(keys, 2, 3), c.shape_of(mask, -1));
  ir::Value* pads = c.concat({c.ints({0}), missing}, 0);
  ir::Value* value = c.scalar_like(mask->dtype() == DType::boolean ? 0 : kMinusInfinity, mask);
  return c.add(PadAttrs{}, {mask, pads, value, c.ints({-1})});
}

// Which keys a query may see, as booleans that broadcast to the scores; null = all.
ir::Value* keys_to_see(NodeContext& c, ir::Value* q, ir::Value* k, bool causal) {
  ir::Value* visible = nullptr;
  const auto restrict = [&](ir::Value* to) {
    visible = visible ? c.binary(ElementwiseOp::logical_and, visible, to) : to;
  };
  ir::Value* keys = causal || c.has(6) ? count_up(c, c.shape_of(k, 2, 3)) : nullptr;
  if (causal) {
    ir::Value* queries = count_up(c, c.shape_of(q, 2, 3));
    if (c.has(4)) queries = c.plus(queries, c.shape_of(c.input(4), 2, 3));
    restrict(c.binary(ElementwiseOp::less_equal, keys, c.unsqueeze(queries, {1})));
  }
  if (c.has(6)) restrict(c.binary(ElementwiseOp::less, keys, c.unsqueeze(c.input(6), {1, 2, 3})));
  if (c.has(3) && c.input(3)->dtype() == DType::boolean) restrict(pad_mask(c, c.input(3), k));
  return visible;
}

// Q times the scale, by default the inverse root of the head size.
ir::Value* scaled_query(NodeContext& c, ir::Value* q) {
  if (c.has_attribute("scale")) return c.binary(ElementwiseOp::mul, q, c.real("scale", 1));
  if (const auto size = c.dim(q, 3).as_constant())
    return c.binary(ElementwiseOp::mul, q, 1 / std::sqrt(static_cast<double>(*size)));
  return c.divide(q, c.cast(c.unary(UnaryOp::sqrt, c.cast(c.shape_of(q, 3, 4), DType::f32)), q->dtype()));
}

}  // namespace

void import_attention(NodeContext& c) {
  const int64_t q_heads = c.integer("q_num_heads", 0), kv_heads = c.integer("kv_num_heads", 0);
  const bool causal = c.flag("is_causal", false);
  const double softcap = c.real("softcap", 0);
  const int64_t mode = c.integer("qk_matmul_output_mode", 0);
  ir::Value* input = c.require(0);
  const DType type = input->dtype();
  const std::optional<DType> precision =
      to_dtype(static_cast<ElementType>(c.integer("softmax_precision", static_cast<int64_t>(from_dtype(type)))));
  if (!precision || !is_floating(*precision)) return c.unsupported("softmax_precision must be a floating type");
  if (input->rank() == 3 && (q_heads < 1 || kv_heads < 1))
    return c.invalid("inputs of rank 3 need q_num_heads and kv_num_heads");
  ir::Value* q = split_heads(c, input, q_heads);
  ir::Value* k = split_heads(c, c.require(1), kv_heads);
  ir::Value* v = split_heads(c, c.require(2), kv_heads);
  if (c.has(4)) k = c.concat({c.input(4), k}, 2);
  if (c.has(5)) v = c.concat({c.input(5), v}, 2);
  c.set_output(1, k);
  c.set_output(2, v);
  ir::Value* visible = keys_to_see(c, q, k, causal);
  ir::Value* scores = c.matmul(scaled_query(c, q), repeat_for(c, k, q), {.b = true});
  if (mode == 0) c.set_output(3, scores);
  if (softcap > 0)
    scores = c.binary(ElementwiseOp::mul,
                      c.activation(ActivationOp::tanh, c.binary(ElementwiseOp::div, scores, softcap)), softcap);
  if (mode == 1) c.set_output(3, scores);
  ir::Value* shape = c.shape_of(scores);
  if (c.has(3) && c.input(3)->dtype() != DType::boolean)
    scores = c.plus(scores, c.cast(pad_mask(c, c.input(3), k), type));
  if (visible) scores = c.select(visible, scores, c.scalar(kMinusInfinity, type));
  scores = c.require_shape("the scores under the mask", scores, shape);
  if (mode == 2) c.set_output(3, scores);
  ir::Value* weights = c.cast(c.softmax(c.cast(scores, *precision), -1), type);
  if (mode == 3) c.set_output(3, weights);
  ir::Value* y = c.matmul(weights, repeat_for(c, v, q));
  c.set_output(0, input->rank() == 3 ? merge_heads(c, y) : y);
}

void import_rotary_embedding(NodeContext& c) {
  const bool interleaved = c.flag("interleaved", false);
  const int64_t heads = c.integer("num_heads", 0);
  const int64_t turned = c.integer("rotary_embedding_dim", 0);
  ir::Value* input = c.require(0);
  ir::Value *cosines = c.require(1), *sines = c.require(2);
  if (input->rank() == 3 && heads < 1) return c.invalid("an input of rank 3 needs num_heads");
  if (input->rank() != 3 && input->rank() != 4) return c.invalid("the input must have rank 3 or 4");
  ir::Value* x = split_heads(c, input, heads);  // [batch, heads, sequence, size]
  if (c.has(3)) cosines = c.gather(cosines, c.input(3), 0), sines = c.gather(sines, c.input(3), 0);
  const std::optional<int64_t> size = c.dim(x, 3).as_constant();
  if (turned == 0 && !size) return c.unsupported("the head size must be known");
  ir::Value* result = rotary_embedding(c, x, cosines, sines, {interleaved, turned == 0 ? *size : turned});
  c.set_output(0, input->rank() == 3 ? merge_heads(c, result) : result);
}

// Writes the update into the cache at a position of its own for each batch entry.
void import_tensor_scatter(NodeContext& c) {
  ir::Value *cache = c.require(0), *update = c.require(1);
  const int64_t axis = c.axis(c.integer("axis", -2), std::max(cache->rank(), 1));
  const std::string mode = c.string("mode", "linear");
  if (mode != "linear" && mode != "circular") return c.invalid("mode '{}' is unknown", mode);
  if (axis == 0) return c.invalid("the axis cannot be the batch");
  TensorScatterAttrs attributes;
  attributes.axis = axis;
  attributes.circular = mode == "circular";
  std::vector<ir::Value*> inputs{cache, update};
  if (c.has(2)) inputs.push_back(c.input(2));
  c.set_output(0, c.add(attributes, inputs));
}

// A state of [keys, values] per head that each step decays, corrects, adds to and reads; written out step by step.
void import_linear_attention(NodeContext& c) {
  c.ignore({"chunk_size"});  // how it is computed, not what
  const int64_t q_heads = c.require_integer("q_num_heads"), kv_heads = c.require_integer("kv_num_heads");
  const std::string rule = c.string("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta", corrected = rule == "delta" || rule == "gated_delta";
  double scale = c.real("scale", 0);
  if (!gated && !corrected && rule != "linear") return c.invalid("update_rule '{}' is unknown", rule);
  if (c.failed() || q_heads < 1 || kv_heads < 1 || q_heads % kv_heads != 0)
    return c.invalid("the numbers of heads are not valid");
  ir::Value* input = c.require(0);
  const DType type = input->dtype();
  const auto heads = [&](ir::Value* x, int64_t count) { return c.cast(split_heads(c, x, count), DType::f32); };
  ir::Value *q = heads(input, q_heads), *k = heads(c.require(1), kv_heads), *v = heads(c.require(2), kv_heads);
  const std::optional<int64_t> steps = c.dim(q, 2).as_constant(), keys = c.dim(q, 3).as_constant(),
                               values = c.dim(v, 3).as_constant();
  if (!steps || *steps < 1 || *steps > 1024 || !keys || !values)
    return c.unsupported("the sequence length must be known and at most 1024, and the head sizes known");
  // One decay per head, or one per key; one beta per head, or one for all.
  ir::Value* decay = gated ? c.unary(UnaryOp::exp, heads(c.require(4), kv_heads)) : nullptr;
  ir::Value* beta = corrected ? heads(c.require(5), c.dim(c.require(5), 2).as_constant().value_or(1)) : nullptr;
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(*keys));
  ir::Value* state = c.has(3) ? c.cast(c.input(3), DType::f32)
                              : c.expand(c.scalar(0, DType::f32),
                                         c.concat({c.shape_of(q, 0, 1), c.ints({kv_heads, *keys, *values})}, 0));
  std::vector<ir::Value*> outputs;
  for (int64_t t = 0; t < *steps && !c.failed(); ++t) {
    const auto at = [&](ir::Value* x) { return c.slice(x, 2, t, t + 1); };  // [batch, heads, 1, size]
    ir::Value *key = at(k), *value = at(v);
    if (gated) state = c.mul(state, c.transpose(at(decay), {0, 1, 3, 2}));
    if (corrected) value = c.mul(at(beta), c.minus(value, c.matmul(key, state)));
    state = c.plus(state, c.matmul(key, value, {.a = true}));
    outputs.push_back(c.matmul(at(q), repeat_for(c, state, q)));
  }
  if (c.failed()) return;
  ir::Value* y = c.binary(ElementwiseOp::mul, c.concat(outputs, 2), scale);
  c.set_output(0, c.cast(merge_heads(c, y), type));
  c.set_output(1, c.cast(state, c.has(3) ? c.input(3)->dtype() : type));
}

}  // namespace lathe::onnx
