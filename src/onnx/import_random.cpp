// SPDX-License-Identifier: Apache-2.0
// Random numbers. With a seed a node gives the same numbers in every run, and nodes of equal seeds equal numbers;
// without one other numbers in each run. Dropout, which draws some in training mode.
#include <bit>

#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

ir::Value* seed_of(NodeContext& c) {
  if (c.has_attribute("seed")) return c.ints({std::bit_cast<int32_t>(static_cast<float>(c.real("seed", 0)))});
  FreshSeedAttrs attributes;
  attributes.stream = static_cast<int64_t>(c.graph().nodes().size());  // nodes after it have another
  return c.add(attributes, {});
}

ir::Value* uniform(NodeContext& c, ir::Value* shape, DType dtype) {
  RandomAttrs attributes;
  attributes.dtype = dtype;
  return c.add(attributes, {shape, seed_of(c)});
}

// The type that the attribute `dtype` names.
DType type_of(NodeContext& c, DType fallback) {
  const auto type = static_cast<ElementType>(c.integer("dtype", static_cast<int64_t>(from_dtype(fallback))));
  if (!to_dtype(type)) c.unsupported("its type {} is not supported", name_of(type));
  return to_dtype(type).value_or(fallback);
}

// x and a mask, where training_mode holds: whether a number is not below the ratio, and what is kept in proportion to
// what is dropped. A node with a seed drops what ONNX's reference does.
void drop(NodeContext& c, ir::Value* x, ir::Value* training) {
  ir::Value* shape = c.shape_of(x);
  ir::Value* drawn = c.has_attribute("seed") ? c.add(NumpyRandomAttrs{}, {shape, c.ints({c.integer("seed", 0)})})
                                             : uniform(c, shape, DType::f64);
  ir::Value* ratio = c.has(1) ? c.cast(c.reshape(c.input(1), Ints{}), DType::f64) : c.scalar(0.5, DType::f64);
  ir::Value* is_kept = c.binary(ElementwiseOp::greater_equal, drawn, ratio);
  ir::Value* scale = c.cast(c.divide(c.scalar(1, DType::f64), c.minus(c.scalar(1, DType::f64), ratio)), x->dtype());
  ir::Value* kept = c.select(is_kept, c.mul(x, scale), c.scalar_like(0, x));
  if (training) {
    training = c.reshape(training, Ints{});
    kept = c.select(training, kept, x);
    is_kept = c.binary(ElementwiseOp::logical_or, is_kept, c.unary(UnaryOp::logical_not, training));
  }
  c.set_outputs({kept, is_kept});
}

}  // namespace

// Inference passes its input through and keeps every element.
void import_dropout(NodeContext& c) {
  c.ignore({"consumed_inputs", "ratio", "seed", "is_test"});
  ir::Value* x = c.require(0);
  if (c.version() >= 12 && c.has(2)) {
    const std::optional<double> training = c.constant_scalar(c.input(2));
    const std::optional<double> ratio = c.has(1) ? c.constant_scalar(c.input(1)) : 0.5;
    if (ratio && !(*ratio >= 0 && *ratio < 1)) return c.invalid("its ratio is {}, expected one in [0, 1)", *ratio);
    const bool may_drop = (!training || *training != 0) && ratio != 0;
    if (may_drop) return drop(c, x, training ? nullptr : c.input(2));
  }
  c.set_output(0, c.identity(x));
  if (!c.wants(1)) return;
  const Tensor mask = Tensor::of<bool>({1}, {true});
  ir::Value* kept = c.fill(c.shape_of(x), mask);
  c.set_output(1, c.version() < 10 ? c.cast(kept, x->dtype()) : kept);
}

void import_random(NodeContext& c) {
  RandomAttrs attributes;
  attributes.op = c.op().starts_with("RandomNormal") ? RandomOp::normal : RandomOp::uniform;
  const bool normal = attributes.op == RandomOp::normal;
  attributes.a = normal ? c.real("mean", 0) : c.real("low", 0);
  attributes.b = normal ? c.real("scale", 1) : c.real("high", 1);
  const bool like = c.op().ends_with("Like");
  attributes.dtype = type_of(c, like ? c.require(0)->dtype() : DType::f32);
  if (!like && !c.has_attribute("shape")) return c.invalid("its attribute 'shape' is missing");
  ir::Value* shape = like ? c.shape_of(c.require(0)) : c.ints(c.integers("shape"));
  c.set_output(0, c.add(attributes, {shape, seed_of(c)}));
}

void import_bernoulli(NodeContext& c) {
  ir::Value* p = c.require(0);
  const DType to = type_of(c, p->dtype()), wide = p->dtype() == DType::f64 ? DType::f64 : DType::f32;
  ir::Value* drawn = uniform(c, c.shape_of(p), wide);
  c.set_output(0, c.cast(c.binary(ElementwiseOp::less, drawn, c.cast(p, wide)), to));
}

// The class at which the sum of the probabilities passes a part of the whole that is drawn.
void import_multinomial(NodeContext& c) {
  ir::Value* logits = c.cast(c.require(0), DType::f64);
  const DType to = type_of(c, DType::i32);
  const int64_t samples = c.integer("sample_size", 1);
  if (logits->rank() != 2) return c.invalid("its input has {} dimensions, expected [batch, classes]", logits->rank());
  if (samples < 1) return c.invalid("sample_size is {}, expected 1 or more", samples);
  if (to != DType::i32 && to != DType::i64) return c.invalid("dtype is {}, expected int32 or int64", name_of(to));
  ir::Value* p = c.unary(UnaryOp::exp, c.minus(logits, c.reduce(ReduceOp::max, logits, {1}, true)));
  ir::Value* sums = c.add(CumulativeAttrs{}, {p, c.integer_scalar(1)});
  ir::Value* drawn = uniform(c, c.concat({c.shape_of(logits, 0, 1), c.ints({samples})}, 0), DType::f64);
  ir::Value* part = c.mul(drawn, c.slice(sums, 1, -1, INT64_MAX));
  ir::Value* passed = c.binary(ElementwiseOp::less_equal, c.unsqueeze(sums, {1}), c.unsqueeze(part, {2}));
  ir::Value* index = c.reduce(ReduceOp::sum, c.cast(passed, DType::i64), {2}, false);
  // Rounding may take the part up to the whole.
  ir::Value* last = c.binary(ElementwiseOp::add, c.squeeze(c.shape_of(logits, 1, 2), {0}), -1.0);
  c.set_output(0, c.cast(c.binary(ElementwiseOp::min, index, last), to));
}

}  // namespace lathe::onnx
