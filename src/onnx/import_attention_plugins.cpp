// SPDX-License-Identifier: Apache-2.0
// Standard plugins of TensorRT for transformers. Names and defaults of fields are theirs.
#include <cmath>
#include <limits>

#include "onnx/plugins.h"

namespace lathe::onnx {
namespace {

// [S, B, E, 1, 1] as the plugins of BERT have it, and without what is 1.
bool is_bert_sequence(NodeContext& c, const ir::Value* x) {
  if (c.failed()) return false;
  if (x->rank() == 5) return true;
  c.invalid("the input has {} dimensions, expected 5: length, batch, size, 1, 1", x->rank());
  return false;
}
ir::Value* without_ones(NodeContext& c, ir::Value* x) { return c.squeeze(x, {3, 4}); }

DType type_of(NodeContext& c) {
  const int64_t type = c.require_integer("type_id");
  if (type != 0 && type != 1) c.unsupported("type_id {} is not supported; 0 (float32) and 1 (half) are", type);
  return type == 1 ? DType::f16 : DType::f32;
}

// Where the plugin looks for how far a key is from a query: near ones have a place each, those beyond half of the span
// share places, the more of them the further away they are.
ir::Value* places_of_distances(NodeContext& c, ir::Value* length, int64_t span) {
  const auto middle = static_cast<double>(span / 2);
  ir::Value* steps = c.add(RangeAttrs{}, {c.integer_scalar(0), length, c.integer_scalar(1)});
  ir::Value* distance = c.cast(c.minus(c.unsqueeze(steps, {1}), c.unsqueeze(steps, {0})), DType::f32);
  ir::Value* size = c.unary(UnaryOp::abs, distance);
  const double first = std::log(middle);
  // Rounding must not take a number that should be whole to the next one.
  const double factor = (middle - 1) / (std::log(static_cast<double>(2 * span - 1)) - first) * (1 - 1e-7);
  ir::Value* far = c.unary(UnaryOp::log, c.binary(ElementwiseOp::max, size, middle));
  far = c.binary(ElementwiseOp::mul, c.binary(ElementwiseOp::sub, far, first), factor);
  far = c.binary(ElementwiseOp::add, c.unary(UnaryOp::ceil, far), middle);
  ir::Value* bucket = c.select(c.binary(ElementwiseOp::less_equal, size, middle), size, far);
  bucket = c.mul(bucket, c.unary(UnaryOp::sign, distance));
  ir::Value* place = c.binary(ElementwiseOp::add, bucket, static_cast<double>(span));
  place = c.binary(ElementwiseOp::max, place, 0.0);
  return c.cast(c.binary(ElementwiseOp::min, place, static_cast<double>(2 * span - 1)), DType::i64);
}

}  // namespace

// DeBERTa's scores: of contents, of contents and positions, and of positions and contents.
void import_disentangled_attention_plugin(NodeContext& c) {
  const int64_t span = c.require_integer("span");
  if (!c.has_attribute("factor")) return c.invalid("the plugin needs field 'factor'");
  const double factor = c.real("factor", 1);
  ir::Value *scores = c.require(0), *to_position = c.require(1), *from_position = c.require(2);
  if (c.failed()) return;
  for (const ir::Value* x : {scores, to_position, from_position})
    if (x->rank() != 3) return c.invalid("an input has {} dimensions, expected 3", x->rank());
  if (span < 4) return c.invalid("span {} leaves no places for what is further away; expected 4 or more", span);
  ir::Value* place = places_of_distances(c, c.squeeze(c.shape_of(scores, 1, 2), {0}), span);
  ir::Value* shape = c.shape_of(scores);
  GatherElementsAttrs along;
  along.axis = 2;
  ir::Value* positions = c.add(along, {to_position, c.expand(place, shape)});
  ir::Value* contents = c.add(along, {from_position, c.expand(c.transpose(place, {1, 0}), shape)});
  ir::Value* sum = c.plus(scores, c.plus(positions, c.transpose(contents, {0, 2, 1})));
  c.set_output(0, c.binary(ElementwiseOp::mul, sum, factor));
}

void import_skip_layer_norm_plugin(NodeContext& c) {
  const DType type = type_of(c);
  if (!c.has_attribute("gamma") || !c.has_attribute("beta"))
    return c.invalid("the plugin needs fields 'gamma' and 'beta'");
  c.ignore({"ld"});  // the input tells it
  ir::Value *x = c.require(0), *skip = c.require(1);
  if (!is_bert_sequence(c, x) || !is_bert_sequence(c, skip)) return;
  ir::Value* sum = c.plus(without_ones(c, c.cast(x, type)), without_ones(c, c.cast(skip, type)));
  if (c.has_attribute("bias")) sum = c.plus(sum, field_numbers(c, "bias", type));
  LayerNormalizationAttrs attributes;
  attributes.epsilon = type == DType::f16 ? std::ldexp(1, -10) : std::numeric_limits<float>::epsilon();
  ir::Value* y = c.add(attributes, {sum, field_numbers(c, "gamma", type), field_numbers(c, "beta", type)});
  c.set_output(0, c.unsqueeze(y, {3, 4}));
}

// Queries, keys and values of a head lie next to each other.
void import_qkv_to_context_plugin(NodeContext& c) {
  const DType type = type_of(c);
  const int64_t size = c.require_integer("hidden_size"), heads = c.require_integer("num_heads");
  const bool masked = c.flag("has_mask", false);
  c.ignore({"dq_probs"});  // of 8 bits
  ir::Value* x = c.require(0);
  if (!is_bert_sequence(c, x)) return;
  if (heads < 1 || size < heads || size % heads != 0)
    return c.invalid("{} heads do not share a size of {}", heads, size);
  if (masked || c.has(1))
    return c.unsupported("masks are packed for kernels of TensorRT; use IAttention with a mask in its place");
  ir::Value* split = c.reshape(without_ones(c, c.cast(x, type)), {0, 0, heads, 3, size / heads});
  const auto part = [&](int64_t i) {  // [B, N, S, H]
    return c.transpose(c.squeeze(c.slice(split, 3, i, i + 1), {3}), {1, 2, 0, 3});
  };
  const double scale = 1 / std::sqrt(static_cast<double>(size / heads));
  ir::Value* scores = c.binary(ElementwiseOp::mul, c.matmul(part(0), c.transpose(part(1), {0, 1, 3, 2})), scale);
  ir::Value* y = c.matmul(c.softmax(scores, 3), part(2));
  c.set_output(0, c.unsqueeze(c.reshape(c.transpose(y, {2, 0, 1, 3}), {0, 0, size}), {3, 4}));
}

}  // namespace lathe::onnx
