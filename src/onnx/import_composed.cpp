// SPDX-License-Identifier: Apache-2.0
// Less common operators, written out in more common ones.
#include <cmath>
#include <numbers>

#include "compose/reverse_sequence.h"
#include "onnx/importer.h"

namespace lathe::onnx {

// Cuts or pads with zeros around the middle; the odd element goes to the end.
void import_center_crop_pad(NodeContext& c) {
  ir::Value *x = c.require(0), *target = c.require(1);
  Ints axes = c.integers("axes");
  if (axes.empty())
    for (int i = 0; i < x->rank(); ++i) axes.push_back(i);
  for (int64_t& axis : axes) axis = c.axis(axis, x->rank());
  ir::Value* extents = c.gather(c.shape_of(x), c.ints(axes), 0);
  ir::Value* zero = c.integer_scalar(0);
  ir::Value* two = c.integer_scalar(2);
  target = c.cast(target, DType::i64);
  ir::Value* surplus = c.binary(ElementwiseOp::max, c.minus(extents, target), zero);
  ir::Value* begin = c.divide(surplus, two);
  ir::Value* kept = c.minus(extents, surplus);
  ir::Value* cut = c.add(SliceAttrs{}, {x, begin, c.plus(begin, kept), c.ints(axes)});
  ir::Value* missing = c.binary(ElementwiseOp::max, c.minus(target, extents), zero);
  ir::Value* before = c.divide(missing, two);
  ir::Value* pads = c.concat({before, c.minus(missing, before)}, 0);
  c.set_output(0, c.add(PadAttrs{}, {cut, pads, nullptr, c.ints(axes)}));
}

// The first `length` entries of each sequence, backwards.
void import_reverse_sequence(NodeContext& c) {
  ir::Value *x = c.require(0), *lengths = c.require(1);
  const int64_t batch = c.integer("batch_axis", 1), time = c.integer("time_axis", 0);
  if (x->rank() < 2 || batch == time || batch < 0 || batch > 1 || time < 0 || time > 1)
    return c.invalid("batch_axis and time_axis must be 0 and 1");
  if (lengths->rank() != 1) return c.invalid("sequence_lens has rank {}, but must have 1", lengths->rank());
  lengths = c.require_shape("sequence_lens", lengths, c.shape_of(x, batch, batch + 1));
  c.set_output(0, reverse_sequence(c, x, lengths, batch, time));
}

// a - b cos(2 pi n / N) + d cos(4 pi n / N)
void import_window_function(NodeContext& c) {
  ir::Value* size = c.require(0);
  const bool periodic = c.flag("periodic", true);
  const std::optional<DType> type = to_dtype(static_cast<ElementType>(c.integer("output_datatype", 1)));
  if (!type) return c.unsupported("its output type is not supported");
  double a = 0.5, b = 0.5, d = 0;
  if (c.op() == "HammingWindow") a = 25.0 / 46.0, b = 21.0 / 46.0;
  if (c.op() == "BlackmanWindow") a = 0.42, d = 0.08;
  ir::Value* count = c.reshape(c.cast(size, DType::i64), Ints{});
  ir::Value* steps = c.cast(c.add(RangeAttrs{}, {c.integer_scalar(0), count, c.integer_scalar(1)}), DType::f64);
  ir::Value* period = c.cast(periodic ? count : c.minus(count, c.integer_scalar(1)), DType::f64);
  ir::Value* angle = c.divide(c.binary(ElementwiseOp::mul, steps, 2 * std::numbers::pi), period);
  ir::Value* y = c.binary(ElementwiseOp::add, c.binary(ElementwiseOp::mul, c.unary(UnaryOp::cos, angle), -b), a);
  if (d != 0)
    y = c.plus(y, c.binary(ElementwiseOp::mul, c.unary(UnaryOp::cos, c.binary(ElementwiseOp::mul, angle, 2.0)), d));
  c.set_output(0, c.cast(y, *type));
}

// Small determinants are sums of products; others are eliminated.
void import_det(NodeContext& c) {
  ir::Value* x = c.require(0);
  if (c.failed()) return;
  const std::optional<int64_t> n = x->rank() >= 2 ? c.dim(x, x->rank() - 1).as_constant() : std::nullopt;
  if (n < 1 || n > 3 || c.dim(x, x->rank() - 2).as_constant() != n)
    return c.set_output(0, c.add(DeterminantAttrs{}, {x}));
  const auto at = [&](int64_t i, int64_t j) {
    ir::Value* element = c.slice(c.slice(x, x->rank() - 2, i, i + 1), x->rank() - 1, j, j + 1);
    return c.squeeze(element, {x->rank() - 2, x->rank() - 1});
  };
  const auto minor = [&](int64_t i, int64_t j, int64_t from) {  // of two rows from `from` on, columns i and j
    return c.minus(c.mul(at(from, i), at(from + 1, j)), c.mul(at(from, j), at(from + 1, i)));
  };
  if (n == 1) return c.set_output(0, at(0, 0));
  if (n == 2) return c.set_output(0, minor(0, 1, 0));
  ir::Value* sum = c.minus(c.mul(at(0, 0), minor(1, 2, 1)), c.mul(at(0, 1), minor(0, 2, 1)));
  c.set_output(0, c.plus(sum, c.mul(at(0, 2), minor(0, 1, 1))));
}

// Depthwise convolution along the last axis that sees the past only; the last inputs are kept for the next call.
void import_causal_conv_with_state(NodeContext& c) {
  ir::Value *x = c.require(0), *w = c.require(1);
  const std::string activation = c.string("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return c.invalid("activation '{}' is unknown", activation);
  const std::optional<int64_t> channels = c.dim(w, 0).as_constant(), kernel = c.dim(w, 2).as_constant();
  if (x->rank() != 3 || w->rank() != 3 || !channels || !kernel)
    return c.unsupported("input and weights must have rank 3, and the weights known dims");
  ir::Value* padded = nullptr;
  if (c.has(3))
    padded = c.concat({c.input(3), x}, 2);
  else
    padded = c.add(PadAttrs{}, {x, c.ints({*kernel - 1, 0}), nullptr, c.ints({2})});
  ConvolutionAttrs attributes;
  attributes.stride = attributes.dilation = {1};
  attributes.pads_begin = attributes.pads_end = {0};
  attributes.groups = *channels;
  ir::Value* y = c.add(attributes, {padded, w, c.input(2)});
  c.set_output(0, activation == "none" ? y : c.activation(ActivationOp::silu, y));
  if (!c.wants(1)) return;
  ir::Value* start = c.minus(c.shape_of(padded, 2, 3), c.ints({*kernel - 1}));
  c.set_output(1, c.add(SliceAttrs{}, {padded, start, c.ints({INT64_MAX}), c.ints({2})}));
}

// Points of a regular grid over [-1, 1] in each spatial axis, moved by one affine map per batch entry.
void import_affine_grid(NodeContext& c) {
  ir::Value *theta = c.require(0), *size = c.require(1);
  const bool corners = c.flag("align_corners", false);
  const std::optional<int64_t> rank = c.dim(size, 0).as_constant();
  if (!rank || (*rank != 4 && *rank != 5)) return c.invalid("size must have 4 or 5 entries");
  const int64_t spatial = *rank - 2;
  const DType type = theta->dtype();
  ir::Value* extents = c.slice(size, 0, 2, *rank);
  std::vector<ir::Value*> columns;  // x, y(, z), 1: each of the grid's shape and one more axis
  ir::Value* with_column = c.concat({extents, c.ints({1})}, 0);
  for (int64_t i = spatial; i-- > 0;) {
    ir::Value* extent = c.squeeze(c.slice(extents, 0, i, i + 1), {0});
    ir::Value* steps = c.cast(c.add(RangeAttrs{}, {c.integer_scalar(0), extent, c.integer_scalar(1)}), DType::f64);
    ir::Value* count = c.cast(extent, DType::f64);
    ir::Value* width = c.divide(c.scalar(2, DType::f64), corners ? c.binary(ElementwiseOp::add, count, -1.0) : count);
    ir::Value* at = c.binary(ElementwiseOp::add, c.mul(steps, width), -1.0);
    if (!corners) at = c.plus(at, c.binary(ElementwiseOp::mul, width, 0.5));
    Ints axes;
    for (int64_t j = 0; j <= spatial; ++j)
      if (j != i) axes.push_back(j);
    columns.push_back(c.expand(c.unsqueeze(c.cast(at, type), axes), with_column));
  }
  columns.push_back(c.expand(c.scalar(1, type), with_column));
  ir::Value* points = c.reshape(c.concat(columns, spatial), {-1, spatial + 1});
  ir::Value* moved = c.matmul(points, c.transpose(theta, {0, 2, 1}));  // [batch, points, spatial]
  c.set_output(0, c.reshape(moved, c.concat({c.shape_of(theta, 0, 1), extents, c.ints({spatial})}, 0)));
}

}  // namespace lathe::onnx
