// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "onnx/import_window.h"
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

Ints spatial_axes(const ir::Value* x) {
  Ints axes;
  for (int i = 2; i < x->rank(); ++i) axes.push_back(i);
  return axes;
}

}  // namespace

std::optional<PoolingAttrs> pooling_attributes(NodeContext& c, const ir::Value* x, PoolingOp op) {
  PoolingAttrs attributes;
  attributes.op = op;
  attributes.window = c.integers("kernel_shape");
  const auto spatial = static_cast<int64_t>(attributes.window.size());
  if (spatial < 1 || x->rank() != spatial + 2) {
    c.invalid("kernel_shape has {} entries for an input of rank {}", spatial, x->rank());
    return std::nullopt;
  }
  WindowAttributes window = read_window(c, spatial);
  attributes.stride = std::move(window.stride);
  attributes.dilation = std::move(window.dilation);
  attributes.pads_begin = std::move(window.pads_begin);
  attributes.pads_end = std::move(window.pads_end);
  attributes.padding_mode = window.mode;
  if (op == PoolingOp::average) attributes.count_include_pad = c.flag("count_include_pad", false);
  return attributes;
}

void import_pool(NodeContext& c) {
  ir::Value* x = c.require(0);
  const PoolingOp op = c.op() == "MaxPool"       ? PoolingOp::max
                       : c.op() == "AveragePool" ? PoolingOp::average
                                                 : PoolingOp::lp;
  if (op == PoolingOp::lp && c.version() < 2 && c.integers("kernel_shape").empty())
    return c.invalid("kernel_shape is missing");
  std::optional<PoolingAttrs> attributes = pooling_attributes(c, x, op);
  if (!attributes) return;
  if (op == PoolingOp::max) attributes->column_major_indices = c.integer("storage_order", 0) == 1;
  if (op == PoolingOp::lp) {
    // Version 1 has a float here.
    attributes->p = c.version() < 2 ? static_cast<int64_t>(c.real("p", 2)) : c.integer("p", 2);
  }
  c.set_outputs(c.add_all(*attributes, {x}, op == PoolingOp::max && c.wants(1) ? 2 : 1));
}

// What pooling found, put back where it was: the inverse of pooling of as many windows. The indices are of the whole
// flat tensor without `output_shape`, in whose front corner it then lies.
void import_max_unpool(NodeContext& c) {
  ir::Value *x = c.require(0), *indices = c.require(1);
  if (c.failed()) return;
  const Ints window = c.integers("kernel_shape");
  const size_t spatial = window.size();
  const Ints stride = c.integers("strides", Ints(spatial, 1)), pads = c.integers("pads", Ints(2 * spatial, 0));
  if (spatial < 1 || x->rank() != static_cast<int>(spatial) + 2 || stride.size() != spatial ||
      pads.size() != 2 * spatial || std::ranges::min(window) < 1 || std::ranges::min(stride) < 1 ||
      std::ranges::min(pads) < 0)
    return c.invalid("its kernel_shape, strides and pads do not fit an input of {} dimensions", x->rank());
  Ints more(2), steps(2, 1);  // per dimension: x's extent times the step, and so many more
  for (size_t d = 0; d < spatial; ++d) {
    steps.push_back(stride[d]);
    more.push_back(window[d] - stride[d] - pads[d] - pads[spatial + d]);
  }
  indices = c.require_shape("its list of indices", indices, c.shape_of(x));
  ir::Value* shape = c.plus(c.mul(c.shape_of(x), c.ints(steps)), c.ints(more));
  ir::Value* zeros = c.reshape(c.add(ExpandAttrs{}, {c.scalar_like(0, x), shape}), {-1});
  ir::Value* flat = c.add(ScatterElementsAttrs{}, {zeros, c.reshape(indices, {-1}), c.reshape(x, {-1})});
  ir::Value* y = c.reshape(flat, shape, true);
  if (c.has(2)) {
    ir::Value* missing = c.minus(c.cast(c.input(2), DType::i64), shape);
    y = c.add(PadAttrs{}, {y, c.concat({c.ints(Ints(spatial + 2, 0)), missing}, 0)});
  }
  c.set_output(0, y);
}

void import_global_pool(NodeContext& c) {
  ir::Value* x = c.require(0);
  if (x->rank() < 3) return c.invalid("the input must have rank 3 or more");
  c.set_output(0, c.reduce(c.op() == "GlobalMaxPool" ? ReduceOp::max : ReduceOp::mean, x, spatial_axes(x), true));
}

// (sum |x|^p)^(1/p)
void import_global_lp_pool(NodeContext& c) {
  ir::Value* x = c.require(0);
  const double p = c.version() < 2 ? c.real("p", 2) : static_cast<double>(c.integer("p", 2));
  if (x->rank() < 3) return c.invalid("the input must have rank 3 or more");
  const Ints axes = spatial_axes(x);
  if (p == 1 || p == 2) return c.set_output(0, c.reduce(p == 1 ? ReduceOp::l1 : ReduceOp::l2, x, axes, true));
  ir::Value* powers = c.binary(ElementwiseOp::pow, c.unary(UnaryOp::abs, x), p);
  c.set_output(0, c.binary(ElementwiseOp::pow, c.reduce(ReduceOp::sum, powers, axes, true), 1 / p));
}

}  // namespace lathe::onnx
