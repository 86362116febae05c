// SPDX-License-Identifier: Apache-2.0
// Attention whose scores and weights graphs of the model change. Passes fuse the pattern again where they do not.
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

// What the graph makes of x, whose shape and type stay.
ir::Value* modified(NodeContext& c, const char* graph, ir::Value* x) {
  if (!c.has_attribute(graph)) return x;
  const std::vector<ir::Value*> results = c.run_graph(c.graph(graph), {x});
  if (c.failed()) return x;
  if (results.size() != 1) return c.invalid("its {} has {} outputs, expected 1", graph, results.size()), x;
  if (results[0]->dtype() != x->dtype())
    return c.invalid("its {} takes {}, but gives {}", graph, name_of(x->dtype()), name_of(results[0]->dtype())), x;
  return c.require_shape(graph, results[0], c.shape_of(x));
}

// Each head as often as heads of q share it.
ir::Value* repeated_for(NodeContext& c, ir::Value* q, ir::Value* x) {
  if (c.failed() || c.dim(q, 1) == c.dim(x, 1)) return x;
  const std::optional<int64_t> heads = c.dim(q, 1).as_constant(), shared = c.dim(x, 1).as_constant();
  if (heads && shared && (*shared < 1 || *heads % *shared != 0)) {
    c.invalid("the number of heads of Q, {}, must be a multiple of that of K and V, {}", *heads, *shared);
    return x;
  }
  ir::Value *wanted = c.shape_of(q, 1, 2), *copies = c.divide(wanted, c.shape_of(x, 1, 2));
  ir::Value* all = c.expand(c.unsqueeze(x, {2}), c.concat({c.ints({1, 1}), copies, c.ints({1, 1})}, 0));
  return c.reshape(all, c.concat({c.shape_of(x, 0, 1), wanted, c.shape_of(x, 2)}, 0), true);
}

ir::Value* scale_of(NodeContext& c, ir::Value* q) {
  if (c.has_attribute("scale")) return c.scalar_like(c.real("scale", 1), q);
  ir::Value* size = c.cast(c.squeeze(c.shape_of(q, 3, 4), {0}), DType::f64);
  return c.cast(c.divide(c.scalar(1, DType::f64), c.unary(UnaryOp::sqrt, size)), q->dtype());
}

}  // namespace

void import_flex_attention(NodeContext& c) {
  ir::Value *q = c.require(0), *k = c.require(1), *v = c.require(2);
  if (c.failed()) return;
  if (q->rank() != 4 || k->rank() != 4 || v->rank() != 4)
    return c.invalid("Q, K and V have {}, {} and {} dimensions, expected 4", q->rank(), k->rank(), v->rank());
  const DType wide = q->dtype() == DType::f64 ? DType::f64 : DType::f32;
  const auto type = static_cast<ElementType>(c.integer("softmax_precision", static_cast<int64_t>(from_dtype(wide))));
  const std::optional<DType> precision = to_dtype(type);
  if (!precision || !is_floating(*precision))
    return c.invalid("its softmax_precision is {}, expected a floating-point type", name_of(type));
  k = repeated_for(c, q, k);
  v = repeated_for(c, q, v);
  ir::Value* scores = c.matmul(c.mul(q, scale_of(c, q)), k, {.b = true});
  scores = modified(c, "score_mod", c.cast(scores, *precision));
  ir::Value* weights = modified(c, "prob_mod", c.softmax(scores, 3));
  c.set_output(0, c.cast(c.matmul(weights, c.cast(v, *precision)), q->dtype()));
}

}  // namespace lathe::onnx
