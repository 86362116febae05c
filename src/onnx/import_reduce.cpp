// SPDX-License-Identifier: Apache-2.0
// Reductions along axes, and what normalises rows with one: softmax and its kin.
#include "onnx/importer.h"
#include "onnx/softmax.h"

namespace lathe::onnx {
namespace {

struct Row {
  std::string_view name;
  ReduceOp op;
};
constexpr Row kRows[] = {
    {"ReduceSum", ReduceOp::sum},
    {"ReduceProd", ReduceOp::prod},
    {"ReduceMax", ReduceOp::max},
    {"ReduceMin", ReduceOp::min},
    {"ReduceMean", ReduceOp::mean},
    {"ReduceL1", ReduceOp::l1},
    {"ReduceL2", ReduceOp::l2},
    {"ReduceLogSum", ReduceOp::log_sum},
    {"ReduceLogSumExp", ReduceOp::log_sum_exp},
    {"ReduceSumSquare", ReduceOp::sum_square},
};

}  // namespace

void import_reduce(NodeContext& c) {
  ReduceAttrs attributes;
  for (const Row& row : kRows)
    if (row.name == c.op()) attributes.op = row.op;
  const bool axes_input = c.version() >= (c.op() == "ReduceSum" ? 13 : 18);
  if (axes_input)
    attributes.noop_with_empty_axes = c.flag("noop_with_empty_axes", false);
  else
    attributes.axes = c.integers("axes");
  attributes.keepdims = c.flag("keepdims", true);
  c.set_output(0, c.add(attributes, {c.require(0), axes_input ? c.input(1) : nullptr}));
}

void import_arg_reduce(NodeContext& c) {
  ArgReduceAttrs attributes;
  attributes.largest = c.op() == "ArgMax";
  attributes.axis = c.integer("axis", 0);
  attributes.keepdims = c.flag("keepdims", true);
  attributes.select_last = c.flag("select_last_index", false);
  c.set_output(0, c.add(attributes, {c.require(0)}));
}

// Softmax, LogSoftmax, Hardmax. Before version 13 they see a matrix: the dims before `axis`, those from it on.
ir::Value* softmax_of(NodeContext& c, ir::Value* x, int64_t version) {
  const bool legacy = version < 13;
  const int64_t axis = c.axis(c.integer("axis", legacy ? 1 : -1), std::max(x->rank(), 1));
  const auto rows = [&](ir::Value* value, int64_t along) {
    if (c.op() != "Hardmax") return c.softmax(value, along, c.op() == "LogSoftmax");
    HardmaxAttrs attributes;
    attributes.axis = along;
    return c.add(attributes, {value});
  };
  if (!legacy || axis == x->rank() - 1) return rows(x, axis);
  FlattenAttrs flatten;
  flatten.axis = axis;
  return c.reshape(rows(c.add(flatten, {x}), 1), c.shape_of(x), true);
}

void import_softmax(NodeContext& c) { c.set_output(0, softmax_of(c, c.require(0), c.version())); }

void import_topk(NodeContext& c) {
  TopkAttrs attributes;
  ir::Value* x = c.require(0);
  ir::Value* k = c.version() < 10 ? c.ints({c.require_integer("k")}) : c.require(1);
  attributes.axis = c.integer("axis", -1);
  attributes.largest = c.flag("largest", true);
  attributes.sorted = c.flag("sorted", true);
  c.set_outputs(c.add_all(attributes, {x, k}, 2));
}

void import_cumulative(NodeContext& c) {
  CumulativeAttrs attributes;
  attributes.op = c.op() == "CumProd" ? CumulativeOp::prod : CumulativeOp::sum;
  attributes.exclusive = c.flag("exclusive", false);
  attributes.reverse = c.flag("reverse", false);
  c.set_output(0, c.add(attributes, {c.require(0), c.require(1)}));
}

}  // namespace lathe::onnx
