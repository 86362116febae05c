// SPDX-License-Identifier: Apache-2.0
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

// -weight[target] * log_probability[target], averaged over the weights, summed, or left as it is.
ir::Value* negative_log_likelihood(NodeContext& c, ir::Value* log_probability, ir::Value* target, ir::Value* weight) {
  const std::string reduction = c.string("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    c.invalid("reduction '{}' is unknown", reduction);
  const bool ignores = c.has_attribute("ignore_index");
  const int64_t ignored_class = c.integer("ignore_index", 0);
  const DType type = log_probability->dtype();
  target = c.require_shape("the target", target,
                           c.concat({c.shape_of(log_probability, 0, 1), c.shape_of(log_probability, 2)}, 0));
  ir::Value *chosen = target, *ignored = nullptr;
  if (ignores) {
    // In i64, for the attribute may name a class that the labels' type does not have.
    ignored = c.binary(ElementwiseOp::equal, c.cast(target, DType::i64), c.integer_scalar(ignored_class));
    chosen = c.select(ignored, c.scalar_like(0, target), target);  // any class that exists
  }
  GatherElementsAttrs pick;
  pick.axis = 1;
  ir::Value* loss = c.unary(UnaryOp::neg, c.squeeze(c.add(pick, {log_probability, c.unsqueeze(chosen, {1})}), {1}));
  ir::Value* share = weight ? c.gather(weight, chosen, 0) : nullptr;
  if (ignored) {
    ir::Value* base = share ? share : c.scalar(1, type);
    share = c.select(ignored, c.scalar(0, type), base);
  }
  if (share) loss = c.mul(loss, share);
  if (reduction == "none") return loss;
  Ints axes;
  for (int i = 0; i < loss->rank(); ++i) axes.push_back(i);
  if (!share || reduction == "sum")
    return c.reduce(reduction == "sum" ? ReduceOp::sum : ReduceOp::mean, loss, axes, false);
  return c.divide(c.reduce(ReduceOp::sum, loss, axes, false), c.reduce(ReduceOp::sum, share, axes, false));
}

}  // namespace

void import_negative_log_likelihood_loss(NodeContext& c) {
  c.set_output(0, negative_log_likelihood(c, c.require(0), c.require(1), c.input(2)));
}

void import_softmax_cross_entropy_loss(NodeContext& c) {
  ir::Value* log_probability = c.softmax(c.require(0), 1, true);
  c.set_output(0, negative_log_likelihood(c, log_probability, c.require(1), c.input(2)));
  c.set_output(1, log_probability);
}

}  // namespace lathe::onnx
