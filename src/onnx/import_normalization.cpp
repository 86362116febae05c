// SPDX-License-Identifier: Apache-2.0
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

// Statistics for every position, not only every channel: spatial=0, before version 9.
void per_element_batch_norm(NodeContext& c, double epsilon) {
  ir::Value* deviation = c.unary(UnaryOp::sqrt, c.binary(ElementwiseOp::add, c.require(4), epsilon));
  ir::Value* normal = c.divide(c.minus(c.require(0), c.require(3)), deviation);
  c.set_output(0, c.plus(c.mul(normal, c.require(1)), c.require(2)));
}

}  // namespace

void import_batch_norm(NodeContext& c) {
  c.ignore({"consumed_inputs", "is_test"});
  BatchNormalizationAttrs attributes;
  attributes.epsilon = c.real("epsilon", 1e-5f);
  attributes.momentum = c.real("momentum", 0.9f);
  attributes.training = c.version() >= 14 && c.flag("training_mode", false);
  if (c.version() < 9 && !c.flag("spatial", true)) return per_element_batch_norm(c, attributes.epsilon);
  for (size_t i = 1; i < 5; ++i)
    if (!attributes.training && c.wants(i))
      return c.unsupported("its training outputs are not supported; export the model for inference");
  ir::Value* x = c.require(0);
  std::vector<ir::Value*> inputs{x};
  for (size_t i = 1; i < 5; ++i) inputs.push_back(c.cast(c.require(i), x->dtype()));
  const std::vector<ir::Value*> outputs = c.add_all(attributes, inputs, attributes.training ? 3 : 1);
  c.set_output(0, outputs[0]);
  for (size_t i = 1; i < outputs.size(); ++i)
    if (c.wants(i)) c.set_output(i, c.cast(outputs[i], c.require(3)->dtype()));
}

void import_instance_norm(NodeContext& c) {
  c.ignore({"consumed_inputs"});
  InstanceNormalizationAttrs attributes;
  attributes.epsilon = c.real("epsilon", 1e-5f);
  c.set_output(0, c.add(attributes, {c.require(0), c.require(1), c.require(2)}));
}

void import_layer_norm(NodeContext& c) {
  LayerNormalizationAttrs attributes;
  attributes.axis = c.integer("axis", -1);
  attributes.epsilon = c.real("epsilon", 1e-5f);
  c.ignore({"stash_type"});  // the core is always computed in 32 bits or more
  size_t outputs = 1;
  for (size_t i = 1; i < 3; ++i)
    if (c.wants(i)) outputs = i + 1;
  c.set_outputs(c.add_all(attributes, {c.require(0), c.require(1), c.input(2)}, outputs));
}

void import_rms_norm(NodeContext& c) {
  RmsNormalizationAttrs attributes;
  attributes.axis = c.integer("axis", -1);
  attributes.epsilon = c.real("epsilon", 1e-5f);
  c.ignore({"stash_type"});
  c.set_output(0, c.add(attributes, {c.require(0), c.require(1)}));
}

void import_group_norm(NodeContext& c) {
  c.ignore({"stash_type"});
  GroupNormalizationAttrs attributes;
  attributes.groups = c.require_integer("num_groups");
  attributes.epsilon = c.real("epsilon", 1e-5f);
  ir::Value* x = c.require(0);
  ir::Value *scale = c.require(1), *bias = c.require(2);
  if (attributes.groups < 1) return c.invalid("num_groups is {}", attributes.groups);
  if (c.version() < 21) {  // one value per group: repeat it for each channel of the group
    ir::Value* channels = c.shape_of(x, 1, 2);
    ir::Value* groups = c.ints({attributes.groups});
    ir::Value* shape = c.concat({groups, c.divide(channels, groups)}, 0);
    const auto per_channel = [&](ir::Value* v) { return c.reshape(c.expand(c.unsqueeze(v, {1}), shape), channels); };
    scale = per_channel(scale), bias = per_channel(bias);
  }
  c.set_output(0, c.add(attributes, {x, scale, bias}));
}

void import_lrn(NodeContext& c) {
  LrnAttrs attributes;
  attributes.size = c.require_integer("size");
  attributes.alpha = c.real("alpha", 1e-4f);
  attributes.beta = c.real("beta", 0.75);
  attributes.bias = c.real("bias", 1);
  c.set_output(0, c.add(attributes, {c.require(0)}));
}

void import_lp_normalization(NodeContext& c) {
  LpNormalizationAttrs attributes;
  attributes.axis = c.integer("axis", -1);
  attributes.p = c.integer("p", 2);
  c.set_output(0, c.add(attributes, {c.require(0)}));
}

// (x - mean) / (sqrt(mean(x^2) - mean^2) + 1e-9)
void import_mean_variance_normalization(NodeContext& c) {
  ir::Value* x = c.require(0);
  const Ints axes = c.integers("axes", {0, 2, 3});
  ir::Value* mean = c.reduce(ReduceOp::mean, x, axes, true);
  ir::Value* variance = c.minus(c.reduce(ReduceOp::mean, c.mul(x, x), axes, true), c.mul(mean, mean));
  ir::Value* deviation = c.binary(ElementwiseOp::add, c.unary(UnaryOp::sqrt, variance), 1e-9);
  c.set_output(0, c.divide(c.minus(x, mean), deviation));
}

}  // namespace lathe::onnx
