// SPDX-License-Identifier: Apache-2.0
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
