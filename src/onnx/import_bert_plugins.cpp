// SPDX-License-Identifier: Apache-2.0
// Standard plugins of TensorRT that BERT is made of. Names and defaults of fields are theirs.
#include <array>
#include <cmath>
#include <limits>

#include "compose/count_up.h"
#include "compose/packed_attention.h"
#include "onnx/plugins.h"

namespace lathe::onnx {
namespace {

// What a plugin computes in. Those of 8 bits stand between floats, which the network's own quantize nodes round, or
// take 8-bit levels, whose scales are fields.
struct Precision {
  DType type = DType::f32;
  bool levels = false;
};

Precision precision_of(NodeContext& c, bool has_levels) {
  const int64_t type = c.require_integer("type_id");
  if (type < 0 || type > (has_levels ? 2 : 1))
    c.unsupported("type_id {} is not supported; 0 (float32){} 1 (half){} are", type, has_levels ? "," : " and",
                  has_levels ? " and 2 (8-bit integers)" : "");
  return {type == 1 ? DType::f16 : DType::f32, type == 2};
}

// Refuses an input that holds levels of a scale that nobody tells.
void require_floats(NodeContext& c, const ir::Value* x) {
  if (!c.failed() && !is_floating(x->dtype()))
    c.unsupported(
        "the input has type {}, whose scale the plugin is not told; give it floats, by a DequantizeLinear before and a "
        "QuantizeLinear behind it",
        name_of(x->dtype()));
}

ir::Value* require_integers(NodeContext& c, size_t input) {
  ir::Value* x = c.require(input);
  if (!c.failed() && x->dtype() != DType::i32 && x->dtype() != DType::i64)
    c.invalid("input {} has type {}, expected int32", input, name_of(x->dtype()));
  return x;
}

// Queries, keys and values of a head lie next to each other, but for versions of 8 bits that lie channels first.
struct QkvToContext {
  Precision precision;
  int64_t size = 0, heads = 0;
  bool has_mask = false;
  int64_t mask_rank = 1;
  bool heads_first = true;
  double weights_scale = 0;  // of the 8-bit levels to which attention weights are rounded; 0 = they stay floats

  // [..., 3E] as queries, keys and values of [..., N, H]; queries are scaled.
  std::array<ir::Value*, 3> split(NodeContext& c, ir::Value* x) const {
    const int64_t head = size / heads, axis = heads_first ? x->rank() : x->rank() - 1;
    Ints shape(static_cast<size_t>(x->rank() - 1), 0);
    shape.insert(shape.end(), {heads_first ? heads : 3, heads_first ? 3 : heads, head});
    ir::Value* all = c.reshape(c.cast(x, precision.type), shape);
    std::array<ir::Value*, 3> parts{};
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      parts[i] = c.squeeze(c.slice(all, axis, at, at + 1), {axis});
    }
    parts[0] = c.binary(ElementwiseOp::mul, parts[0], 1 / std::sqrt(static_cast<double>(head)));
    return parts;
  }

  Attention attention(NodeContext& c) const {
    Attention how;
    if (weights_scale == 0) return how;
    how.weights_type = DType::i8;
    how.weights_scale = c.scalar(weights_scale, DType::f32);
    return how;
  }
};

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

// Input 0, in which queries, keys and values lie along a dimension called so.
ir::Value* require_qkv(NodeContext& c, const QkvToContext& how, std::string_view dims) {
  PluginDims all(c);
  all.set("hidden_size x 3", 3 * how.size);
  return all.require(0, dims);
}

// [S, B, 3E, 1, 1]. Queries that see no key have the result 0.
void attend_in_padded(NodeContext& c, const QkvToContext& how) {
  ir::Value* x = require_qkv(c, how, "length, batch, hidden_size x 3, 1, 1");
  if (c.failed()) return;
  auto parts = how.split(c, c.squeeze(x, {3, 4}));
  ir::Value *sizes = nullptr, *visible = nullptr;
  if (how.has_mask) {
    sizes = sizes_of_sequences(c, how);
    visible = c.binary(ElementwiseOp::less, count_up(c, c.shape_of(x, 0, 1)), sizes);
  }
  for (ir::Value*& part : parts) part = c.transpose(part, {1, 2, 0, 3});  // [B, N, S, H]
  ir::Value* y = attention(c, parts[0], parts[1], parts[2], visible, how.attention(c));
  if (sizes) y = c.select(c.binary(ElementwiseOp::greater, sizes, 0.0), y, c.scalar_like(0, y));
  c.set_output(0, c.unsqueeze(c.reshape(c.transpose(y, {2, 0, 1, 3}), {0, 0, how.size}), {3, 4}));
}

// [tokens, 3E] as [tokens, E], where sequences follow each other; `starts` says where each begins, and where the last
// one ends.
ir::Value* attend(NodeContext& c, const QkvToContext& how, ir::Value* x, ir::Value* starts) {
  const auto [q, k, v] = how.split(c, x);
  return c.reshape(packed_attention(c, {q, starts}, {k, starts}, v, CausalMask::none, how.attention(c)),
                   Ints{0, how.size});
}

// [tokens, 3E, 1, 1]. Inputs 1 and 3, the mask and one as long as the longest sequence, say nothing more.
void attend_in_packed(NodeContext& c, const QkvToContext& how) {
  ir::Value *x = require_qkv(c, how, "tokens, hidden_size x 3, 1, 1"), *starts = require_integers(c, 2);
  require_rank(c, 2, starts, "sequences + 1");
  if (c.failed()) return;
  c.set_output(0, c.unsqueeze(attend(c, how, c.squeeze(x, {2, 3}), starts), {2, 3}));
}

// [1, 3E, tokens, 1], of 8 bits. Input 2, as long as the longest sequence, says nothing more.
void attend_in_interleaved(NodeContext& c, const QkvToContext& how) {
  ir::Value *x = require_qkv(c, how, "1, hidden_size x 3, tokens, 1"), *starts = require_integers(c, 1);
  const bool is_explicit = c.flag("use_explicit_int8", false);
  const double scale = c.real("input_qkv_scale", 1), result_scale = c.real("output_ctx_scale", 1);
  require_rank(c, 1, starts, "sequences + 1");
  if (!is_explicit) require_floats(c, x);
  if (c.failed()) return;
  if (is_explicit && x->dtype() != DType::i8)
    return c.invalid("the input has type {}, expected i8 with use_explicit_int8", name_of(x->dtype()));
  const DType result = is_explicit ? DType::i8 : x->dtype();
  if (is_explicit) x = c.add(DequantizeAttrs{}, {x, c.scalar(scale, DType::f32)});
  ir::Value* y = attend(c, how, c.transpose(c.squeeze(x, {0, 3}), {1, 0}), starts);
  if (is_explicit) {
    QuantizeAttrs levels;
    levels.to = result;
    y = c.add(levels, {y, c.scalar(result_scale, DType::f32)});
  }
  c.set_output(0, c.unsqueeze(c.transpose(c.cast(y, result), {1, 0}), {0, 3}));
}

// Rows, with the parameters that fields hold.
ir::Value* normalize(NodeContext& c, ir::Value* rows, std::string_view prefix, DType parameters, double epsilon) {
  const auto field = [&](std::string_view name) {
    return c.cast(field_numbers(c, std::string(prefix) + std::string(name), parameters), rows->dtype());
  };
  LayerNormalizationAttrs attributes;
  attributes.epsilon = epsilon;
  return c.add(attributes, {rows, field("gamma"), field("beta")});
}

// Rows of a table that a field holds.
ir::Value* table(NodeContext& c, const char* field, ir::Value* row, DType type) {
  return c.reshape(field_numbers(c, field, type), c.concat({c.ints({-1}), row}, 0));
}

}  // namespace

// Versions 1 and 5 have padded sequences, 2 and 6 packed ones; 3 and 7 (one output) and 4 and 8 (the sum, too) are of 8
// bits and lie channels first.
void import_skip_layer_norm_plugin(NodeContext& c) {
  constexpr bool kHasLevels = true;
  const int64_t version = plugin_version(c), form = (version - 1) % 4 + 1;
  const bool channels_first = form > 2;
  const Precision precision = channels_first ? Precision{DType::f32, true} : precision_of(c, kHasLevels);
  c.ignore({"ld"});  // the input tells it
  const std::string_view words = form == 1   ? "length, batch, size, 1, 1"
                                 : form == 2 ? "tokens, size, 1, 1"
                                             : "1, size, tokens, 1";
  PluginDims dims(c);
  ir::Value *x = dims.require(0, words), *skip = dims.require(1, words);
  for (const ir::Value* each : {x, skip})
    if (precision.levels) require_floats(c, each);
  if (c.failed()) return;
  const Ints ones = form == 1 ? Ints{3, 4} : channels_first ? Ints{0, 3} : Ints{2, 3};
  const auto rows = [&](ir::Value* each) {
    each = c.squeeze(c.cast(each, precision.type), ones);
    return channels_first ? c.transpose(each, {1, 0}) : each;
  };
  const DType parameters = precision.levels ? DType::f16 : precision.type, result = x->dtype();
  ir::Value* sum = c.plus(rows(x), rows(skip));
  if (c.has_attribute("bias")) {
    if (channels_first) return c.invalid("version {} of the plugin has no bias", version);
    sum = c.plus(sum, c.cast(field_numbers(c, "bias", parameters), precision.type));
  }
  ir::Value* y = normalize(c, sum, "", parameters, std::numeric_limits<float>::epsilon());
  const auto as_input = [&](ir::Value* each) {
    each = channels_first ? c.transpose(each, {1, 0}) : each;
    return c.unsqueeze(precision.levels ? c.cast(each, result) : each, ones);
  };
  c.set_output(0, as_input(y));
  if (form == 4 && c.wants(1)) c.set_output(1, as_input(sum));
}

// Embeddings of words, of segments and of places, added up and normalised. Versions 1 and 6 have padded sequences,
// whose masks become a size of each; the others have packed ones, and 3 and 5 give the sum, too.
void import_embedding_layer_norm_plugin(NodeContext& c) {
  const int64_t version = plugin_version(c);
  const bool packed = version != 1 && version != 6, gives_sum = version == 3 || version == 5;
  const DType type = c.flag("output_fp16", false) ? DType::f16 : DType::f32;
  constexpr const char *kWords = "bert_embeddings_word_embeddings",
                       *kSegments = "bert_embeddings_token_type_embeddings",
                       *kPlaces = "bert_embeddings_position_embeddings";
  c.ignore({"mha_type_id"});  // for which kernels of TensorRT masks are packed; the attention here takes sizes alone
  if (c.flag("full_mask", false) && !packed && c.wants(1))
    c.warn(
        "full_mask has no effect: a mask becomes the size of each sequence, so all behind its first 0 is hidden, not "
        "zeros alone");
  for (const size_t i : {0, 1, 2}) require_integers(c, i);
  const std::string_view tokens = packed ? "tokens" : "length, batch";
  PluginDims dims(c);
  ir::Value *words = dims.require(0, tokens), *segments = dims.require(1, tokens);
  ir::Value* third = dims.require(2, packed ? "sequences + 1" : tokens);
  if (c.failed()) return;
  ir::Value *beta = field_numbers(c, "bert_embeddings_layernorm_beta", DType::f32), *row = c.shape_of(beta);
  ir::Value* places = packed ? packed_positions(c, {words, third})
                             : c.unsqueeze(count_up(c, c.shape_of(words, 0, 1)), {1});  // beside the batch
  ir::Value* sum =
      c.plus(c.gather(table(c, kWords, row, type), words, 0), c.gather(table(c, kSegments, row, type), segments, 0));
  sum = c.plus(sum, c.gather(table(c, kPlaces, row, type), places, 0));
  constexpr double kEpsilon = 1e-12;  // TensorRT adds none; without it, rows of equal values would divide by 0
  ir::Value* y = normalize(c, sum, "bert_embeddings_layernorm_", DType::f32, kEpsilon);
  const Ints ones = packed ? Ints{2, 3} : Ints{3, 4};
  c.set_output(0, c.unsqueeze(y, ones));
  if (!c.wants(1)) return;
  if (gives_sum) return c.set_output(1, c.unsqueeze(sum, ones));
  if (packed) return c.set_output(1, c.scalar(0, DType::i32));
  ir::Value* length = c.squeeze(c.shape_of(words, 0, 1), {0});
  ir::Value* hidden = c.select(c.binary(ElementwiseOp::equal, third, 0.0), places, length);
  ir::Value* sizes = c.reduce(ReduceOp::min, hidden, {0}, false);
  c.set_output(1, c.unsqueeze(c.cast(sizes, DType::i32), {1}));
}

// [N, B, K, 1, 1] times [K, M].
void import_full_connection_plugin(NodeContext& c) {
  constexpr bool kHasLevels = false;
  const DType type = precision_of(c, kHasLevels).type;
  const int64_t size = c.require_integer("out_dims");
  PluginDims dims(c);
  ir::Value* x = dims.require(0, "length, batch, size, 1, 1");
  if (c.failed()) return;
  ir::Value* weights = c.reshape(field_numbers(c, "W", type), Ints{-1, size});
  c.set_output(0, c.unsqueeze(c.matmul(c.squeeze(c.cast(x, type), {3, 4}), weights), {3, 4}));
}

// The bias is added along the last dimension that is not 1: tensors of BERT end in two of size 1.
void import_gelu_plugin(NodeContext& c) {
  constexpr bool kHasLevels = false;
  const DType type = precision_of(c, kHasLevels).type;
  ir::Value* x = c.cast(c.require(0), type);
  if (c.failed()) return;
  if (c.has_attribute("bias")) {
    Ints beside{-1};
    for (int64_t i = x->rank() - 1; i > 0 && c.dim(x, i) == Expr(1); --i) beside.push_back(1);
    x = c.plus(x, c.reshape(field_numbers(c, "bias", type), beside));
  }
  c.set_output(0, c.activation(ActivationOp::gelu_tanh, x));
}

void import_qkv_to_context_plugin(NodeContext& c) {
  constexpr bool kHasLevels = true;
  const int64_t version = plugin_version(c);
  const bool interleaved = version % 3 == 0, can_pack = version % 3 == 2;
  QkvToContext how;
  how.precision = interleaved ? Precision{DType::f32, true} : precision_of(c, kHasLevels);
  how.size = c.require_integer("hidden_size");
  how.heads = c.require_integer("num_heads");
  how.heads_first = !interleaved;
  const double weights_scale = c.real("dq_probs", 1.0F / 127);
  c.ignore({"use_int8_scale_max"});  // how kernels of TensorRT find the largest score
  if (c.failed()) return;
  if (how.size % how.heads != 0)
    return c.invalid("hidden_size is {}, expected a multiple of num_heads, {}", how.size, how.heads);
  if (interleaved && c.flag("use_explicit_int8", false))
    how.weights_scale = weights_scale;
  else if (how.precision.levels && c.has_attribute("dq_probs"))
    c.warn("dq_probs has no effect without use_explicit_int8: between tensors of floats, weights stay floats");
  if (interleaved) {
    if (c.num_inputs() != 3) return c.invalid("{} inputs, expected 3", c.num_inputs());
    return attend_in_interleaved(c, how);
  }
  how.has_mask = c.flag("has_mask", false);
  how.mask_rank = can_pack ? 1 : 2;
  const bool is_packed = c.flag("var_seqlen", false);
  if (how.precision.levels) require_floats(c, c.require(0));
  if (c.failed()) return;
  if (is_packed && !can_pack) return c.invalid("version {} has no var_seqlen; versions 2 and 5 have", version);
  const size_t inputs = is_packed ? 4 : how.has_mask ? 2 : 1;
  if (c.num_inputs() != inputs || (is_packed && !how.has_mask))
    return c.invalid("{} inputs with has_mask {} and var_seqlen {}, which needs a mask; expected {}", c.num_inputs(),
                     how.has_mask ? 1 : 0, is_packed ? 1 : 0, inputs);
  if (is_packed) return attend_in_packed(c, how);
  attend_in_padded(c, how);
}

}  // namespace lathe::onnx
