// SPDX-License-Identifier: Apache-2.0
// Standard plugins of TensorRT for transformers. Names and defaults of fields are theirs.
#include <array>
#include <cmath>
#include <limits>

#include "compose/count_up.h"
#include "compose/packed_attention.h"
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
  const int64_t half = span / 2;
  const auto middle = static_cast<double>(half);
  ir::Value* steps = count_up(c, length);
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

// BERT's attention. Queries, keys and values of a head lie next to each other.
struct QkvToContext {
  DType type = DType::f32;
  int64_t size = 0, heads = 0;
  bool has_mask = false;
  int64_t mask_rank = 1;

  // [..., 3E] as queries, keys and values of [..., N, H]; queries are scaled.
  std::array<ir::Value*, 3> split(NodeContext& c, ir::Value* x) const {
    const int64_t axis = x->rank(), head = size / heads;
    Ints shape(static_cast<size_t>(axis - 1), 0);
    shape.insert(shape.end(), {heads, 3, head});
    ir::Value* all = c.reshape(c.cast(x, type), shape);
    std::array<ir::Value*, 3> parts{};
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      parts[i] = c.squeeze(c.slice(all, axis, at, at + 1), {axis});
    }
    parts[0] = c.binary(ElementwiseOp::mul, parts[0], 1 / std::sqrt(static_cast<double>(head)));
    return parts;
  }
};

ir::Value* require_integers(NodeContext& c, size_t input) {
  ir::Value* x = c.require(input);
  if (!c.failed() && x->dtype() != DType::i32 && x->dtype() != DType::i64)
    c.invalid("input {} has type {}, expected int32", input, name_of(x->dtype()));
  return x;
}

// How many keys, from the first one on, queries of each sequence see: i64[B, 1, 1, 1]. A mask of two dimensions is [B,
// 1].
ir::Value* sizes_of_sequences(NodeContext& c, const QkvToContext& how) {
  ir::Value *mask = require_integers(c, 1), *shape = c.shape_of(c.require(0), 1, 2);
  if (how.mask_rank == 2) {
    shape = c.concat({shape, c.ints({1})}, 0);
    if (!c.failed() && mask->rank() == 2 && c.dim(mask, 1).as_constant().value_or(1) != 1)
      c.unsupported(
          "a mask of shape {} is packed for kernels of TensorRT; expected [B, 1], a size of each sequence, or use "
          "IAttention with a mask",
          to_string(mask->shape()));
  }
  return c.reshape(c.cast(c.require_shape("the mask", mask, shape), DType::i64), Ints{-1, 1, 1, 1});
}

// [S, B, 3E, 1, 1]. Queries that see no key have the result 0.
void attend_in_padded(NodeContext& c, const QkvToContext& how) {
  ir::Value* x = c.require(0);
  if (!is_bert_sequence(c, x)) return;
  auto parts = how.split(c, without_ones(c, x));
  ir::Value *sizes = nullptr, *visible = nullptr;
  if (how.has_mask) {
    sizes = sizes_of_sequences(c, how);
    visible = c.binary(ElementwiseOp::less, count_up(c, c.shape_of(x, 0, 1)), sizes);
  }
  for (ir::Value*& part : parts) part = c.transpose(part, {1, 2, 0, 3});  // [B, N, S, H]
  ir::Value* y = attention(c, parts[0], parts[1], parts[2], visible, {});
  if (sizes) y = c.select(c.binary(ElementwiseOp::greater, sizes, 0.0), y, c.scalar_like(0, y));
  c.set_output(0, c.unsqueeze(c.reshape(c.transpose(y, {2, 0, 1, 3}), {0, 0, how.size}), {3, 4}));
}

// [tokens, 3E, 1, 1], where sequences follow each other; input 2 says where each begins, and where the last one ends.
// Inputs 1 and 3, the mask and one as long as the longest sequence, say nothing more.
void attend_in_packed(NodeContext& c, const QkvToContext& how) {
  ir::Value *x = c.require(0), *starts = require_integers(c, 2);
  if (c.failed()) return;
  if (x->rank() != 4 || starts->rank() != 1)
    return c.invalid(
        "packed sequences and their begins have {} and {} dimensions, expected 4 (tokens, size, 1, 1) and 1", x->rank(),
        starts->rank());
  const auto [q, k, v] = how.split(c, c.squeeze(x, {2, 3}));
  ir::Value* y = packed_attention(c, {q, starts}, {k, starts}, v, CausalMask::none, {});
  c.set_output(0, c.unsqueeze(c.reshape(y, Ints{0, how.size}), {2, 3}));
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
  ir::Value* place = places_of_distances(c, c.shape_of(scores, 1, 2), span);
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

void import_qkv_to_context_plugin(NodeContext& c) {
  const std::string version = c.string("plugin_version", "1");
  if (version == "3" || version == "6")
    return c.unsupported(
        "version {} is of 8-bit integers whose channels are interleaved, for which there are no kernels; use version 2 "
        "with halves, or IAttention between Q/DQ",
        version);
  QkvToContext how;
  how.type = type_of(c);
  how.size = c.require_integer("hidden_size");
  how.heads = c.require_integer("num_heads");
  how.has_mask = c.flag("has_mask", false);
  const bool can_pack = version == "2" || version == "5", is_packed = c.flag("var_seqlen", false);
  how.mask_rank = can_pack ? 1 : 2;
  c.ignore({"dq_probs", "use_int8_scale_max"});  // of 8 bits
  if (c.failed()) return;
  if (how.heads < 1 || how.size < how.heads || how.size % how.heads != 0)
    return c.invalid("{} heads do not share a size of {}", how.heads, how.size);
  if (is_packed && !can_pack) return c.invalid("version {} has no var_seqlen; versions 2 and 5 have", version);
  const size_t inputs = is_packed ? 4 : how.has_mask ? 2 : 1;
  if (c.num_inputs() != inputs || (is_packed && !how.has_mask))
    return c.invalid("{} inputs with has_mask {} and var_seqlen {}, which needs a mask; expected {}", c.num_inputs(),
                     how.has_mask ? 1 : 0, is_packed ? 1 : 0, inputs);
  if (is_packed) return attend_in_packed(c, how);
  attend_in_padded(c, how);
}

}  // namespace lathe::onnx
