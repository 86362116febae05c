// SPDX-License-Identifier: Apache-2.0
// Normalisations with what ONNX Runtime puts before and behind them.
#include "compose/count_up.h"
#include "onnx/importer.h"
#include "onnx/plugin_dims.h"

namespace lathe::onnx {
namespace {

// 1 / sqrt(mean(x^2) + epsilon) of rows of the dimensions from `axis` on.
ir::Value* inverse_root_mean_square(NodeContext& c, ir::Value* x, int64_t axis, double epsilon) {
  x = c.cast(x, x->dtype() == DType::f64 ? DType::f64 : DType::f32);
  Ints axes;
  for (int64_t i = axis; i < x->rank(); ++i) axes.push_back(i);
  ir::Value* mean = c.binary(ElementwiseOp::add, c.reduce(ReduceOp::mean, c.mul(x, x), axes), epsilon);
  return c.unary(UnaryOp::recip, c.unary(UnaryOp::sqrt, mean));
}

ir::Value* wider(NodeContext& c, ir::Value* x, const ir::Value* than) {
  return size_of(x->dtype()) < size_of(than->dtype()) ? c.cast(x, than->dtype()) : x;
}

// x, in rows of one size, plus what broadcasts to it.
ir::Value* sum_of(NodeContext& c, ir::Value* x, ir::Value* skip, ir::Value* bias, std::string_view skipped) {
  ir::Value* sum = c.require_shape(skipped, c.plus(x, skip), c.shape_of(x));
  return bias ? c.require_shape("the sum plus the bias", c.plus(sum, bias), c.shape_of(x)) : sum;
}

// Of [batch, height, width, channels], or channels first.
ir::Value* normalized_groups(NodeContext& c, ir::Value* x, bool channels_last) {
  const int64_t activation = c.require_integer("activation");
  GroupNormalizationAttrs attributes;
  attributes.groups = c.require_integer("groups");
  attributes.epsilon = c.real("epsilon", 1e-5F);
  if (activation != 0 && activation != 1) c.invalid("activation is {}, expected 0 (none) or 1 (SiLU)", activation);
  const DType type = x->dtype();
  ir::Value *gamma = wider(c, c.require(1), x), *beta = wider(c, c.require(2), x);
  x = wider(c, x, gamma);
  if (channels_last) x = c.transpose(x, {0, 3, 1, 2});
  ir::Value* y = c.add(attributes, {x, gamma, beta});
  if (activation == 1) y = c.activation(ActivationOp::silu, y);
  return c.cast(channels_last ? c.transpose(y, {0, 2, 3, 1}) : y, type);
}

}  // namespace

// Before its own operator of ONNX 23, RMS normalisation has this name in any domain.
void import_simplified_layer_norm(NodeContext& c) {
  RmsNormalizationAttrs attributes;
  attributes.epsilon = c.real("epsilon", 1e-5F);
  c.ignore({"stash_type"});  // the core is always computed in 32 bits or more
  ir::Value *x = c.require(0), *scale = c.require(1);
  attributes.axis = c.axis(c.integer("axis", -1), x->rank());
  if (c.failed()) return;
  const DType type = scale->dtype();
  scale = wider(c, scale, x), x = wider(c, x, scale);
  c.set_output(0, c.cast(c.add(attributes, {x, scale}), type));
  if (c.wants(1)) c.set_output(1, inverse_root_mean_square(c, x, attributes.axis, attributes.epsilon));
}

// Of the sum of two inputs and a bias, which is an output, too.
void import_skip_layer_norm(NodeContext& c) {
  LayerNormalizationAttrs attributes;
  attributes.epsilon = c.real("epsilon", 1e-12F);
  ir::Value* sum = sum_of(c, c.require(0), c.require(1), c.input(4), "the input plus skip");
  std::vector<ir::Value*> inputs{sum, c.require(2)};
  if (c.has(3)) inputs.push_back(c.input(3));
  c.set_outputs(c.add_all(attributes, inputs, c.wants(2) ? 3 : c.wants(1) ? 2 : 1));
  c.set_output(3, sum);
}

void import_skip_simplified_layer_norm(NodeContext& c) {
  RmsNormalizationAttrs attributes;
  attributes.epsilon = c.real("epsilon", 1e-12F);
  if (c.wants(1)) return c.unsupported("output 1, the mean, is no part of an RMS normalisation; remove it");
  ir::Value* sum = sum_of(c, c.require(0), c.require(1), c.input(3), "the input plus skip");
  c.set_output(0, c.add(attributes, {sum, c.require(2)}));
  if (c.wants(2)) c.set_output(2, inverse_root_mean_square(c, sum, sum->rank() - 1, attributes.epsilon));
  c.set_output(3, sum);
}

// Embeddings of words, of places and of segments, added up and normalised. A mask becomes the place of its first 0.
void import_embed_layer_norm(NodeContext& c) {
  LayerNormalizationAttrs attributes;
  attributes.epsilon = c.real("epsilon", 1e-12F);
  c.ignore({"mask_index_type"});  // tells shape inference whether there is output 1
  PluginDims dims(c);
  ir::Value* words = dims.require(0, "batch, length");
  if (c.failed()) return;
  if (c.has(1) != c.has(4)) return c.invalid("segment_ids and segment_embedding are given together or not at all");
  ir::Value *length = dims.size("length"), *places = count_up(c, length);
  ir::Value* sum = c.plus(c.gather(c.require(2), words, 0), c.gather(c.require(3), c.has(8) ? c.input(8) : places, 0));
  if (c.has(1)) sum = c.plus(sum, c.gather(c.input(4), dims.require(1, "batch, length"), 0));
  sum = c.require_shape("the sum of embeddings", sum, c.concat({c.shape_of(words), c.shape_of(c.require(2), 1)}, 0));
  c.set_output(0, c.add(attributes, {sum, c.require(5), c.require(6)}));
  c.set_output(2, sum);
  if (!c.wants(1)) return;
  if (!c.has(7)) return c.set_output(1, c.fill(dims.size("batch"), Tensor::of<int32_t>({1}, {0})));
  ir::Value* hidden = c.binary(ElementwiseOp::equal, dims.require(7, "batch, length"), 0.0);
  ir::Value* first = c.reduce(ReduceOp::min, c.select(hidden, places, c.squeeze(length, {0})), {1}, false);
  c.set_output(1, c.cast(first, DType::i32));
}

void import_channels_last_group_norm(NodeContext& c) {
  const bool channels_last = c.flag("channels_last", true);
  ir::Value* x = c.require(0);
  if (!c.failed() && x->rank() != 4) return c.invalid("the input has {} dimensions, expected 4", x->rank());
  c.set_output(0, normalized_groups(c, x, channels_last));
}

// Of the sum of x, a skip of x's shape or of one vector for each batch entry, and a bias of the channels.
void import_skip_group_norm(NodeContext& c) {
  const bool channels_last = c.flag("channels_last", true);
  ir::Value *x = c.require(0), *skip = c.require(3), *bias = c.input(4);
  if (c.failed()) return;
  if (x->rank() != 4 || (skip->rank() != 4 && skip->rank() != 2))
    return c.invalid("the input has {} dimensions and skip {}, expected 4, and 4 or 2", x->rank(), skip->rank());
  if (skip->rank() == 2) skip = c.unsqueeze(skip, {1, 2});  // along the last dimension, as a bias
  if (!channels_last && c.input(3)->rank() == 2) skip = c.transpose(skip, {0, 3, 1, 2});
  if (!channels_last && bias) bias = c.unsqueeze(bias, {1, 2});
  ir::Value* sum = sum_of(c, x, skip, bias, "the input plus skip");
  c.set_output(0, normalized_groups(c, sum, channels_last));
  c.set_output(1, sum);
}

}  // namespace lathe::onnx
