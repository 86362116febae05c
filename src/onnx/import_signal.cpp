// SPDX-License-Identifier: Apache-2.0
// Fourier transforms and what goes with them.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "compose/count_up.h"
#include "compose/fourier.h"
#include "onnx/importer.h"
#include "onnx/sequences.h"

namespace lathe::onnx {
namespace {

// The number of parts of a complex or real signal; 0 after an error.
int64_t parts_of(NodeContext& c, ir::Value* x) {
  const std::optional<int64_t> parts = x->rank() >= 2 ? c.dim(x, x->rank() - 1).as_constant() : std::nullopt;
  if (parts == 1 || parts == 2) return *parts;
  c.unsupported("the last dimension of its input, 1 for real numbers and 2 for complex ones, must be known");
  return 0;
}

// A number as a list of one.
ir::Value* listed(NodeContext& c, size_t input) { return c.reshape(c.cast(c.require(input), DType::i64), {1}); }

// Whether a size is at least 1, as far as that is known.
bool is_some(NodeContext& c, ir::Value* size, const char* what) {
  const std::optional<double> known = c.constant_scalar(size);
  if (!c.failed() && known && *known < 1) c.invalid("{} is {}, expected 1 or more", what, *known);
  return !c.failed();
}

// Whether the matrix of a transform has at most so many numbers (two gibibytes of f32), as far as that is known.
bool is_feasible(NodeContext& c, ir::Value* x, int64_t axis, ir::Value* points) {
  constexpr double kMost = int64_t{1} << 29;
  const std::optional<double> known = c.constant_scalar(points);
  if (!known) return true;
  const double inputs = std::min(static_cast<double>(c.dim(x, axis).as_constant().value_or(1)), *known);
  if (inputs * *known * 4 <= kMost) return true;
  c.unsupported(
      "a transform of {} points is a product with a matrix, which would have more than {} numbers; transform shorter "
      "frames (STFT), or before the network",
      *known, kMost);
  return false;
}

// x, transformed along the axis: of as many points as the list `points` says, or as there are.
ir::Value* transformed_along(NodeContext& c, ir::Value* x, int64_t axis, ir::Value* points,
                             const FourierTransform& how) {
  if (!points) {
    points = c.shape_of(x, axis, axis + 1);
    if (how.inverse && how.onesided) points = c.mul(c.minus(points, c.ints({1})), c.ints({2}));
  }
  if (!is_some(c, points, "the number of points") || !is_feasible(c, x, axis, points)) return x;
  Ints perm;  // the axis before the last; the same permutation takes it back
  for (int64_t i = 0; i < x->rank(); ++i) perm.push_back(i);
  std::swap(perm[static_cast<size_t>(axis)], perm[perm.size() - 2]);
  const bool moves = axis != x->rank() - 2;
  ir::Value* y = fourier_transform(c, moves ? c.transpose(x, perm) : x, points, how);
  return moves ? c.transpose(y, perm) : y;
}

}  // namespace

void import_dft(NodeContext& c) {
  ir::Value *x = c.require(0), *points = c.has(1) ? listed(c, 1) : nullptr;
  FourierTransform how;
  how.inverse = c.flag("inverse", false), how.onesided = c.flag("onesided", false);
  how.parts = parts_of(c, x);
  if (c.failed()) return;
  if (how.inverse && how.onesided && how.parts != 2) return c.invalid("the inverse of one side takes complex numbers");
  std::optional<int64_t> axis = c.version() < 20 ? c.integer("axis", 1) : -2;
  if (c.version() >= 20 && c.has(2)) {
    const std::optional<double> given = c.constant_scalar(c.input(2));
    axis = given ? std::optional(static_cast<int64_t>(*given)) : std::nullopt;
  }
  const int64_t rank = x->rank();
  if (axis) {
    const int64_t known = c.axis(*axis, rank);
    if (known == rank - 1) return c.invalid("the axis must not be the last one, of real and imaginary parts");
    return c.set_output(0, transformed_along(c, x, known, points, how));
  }
  // Along each of them that can be, from which running chooses. Another one is looked up where nothing is.
  const auto is_too_short = [&](int64_t i) {
    return how.inverse && how.onesided && !points && c.dim(x, i).as_constant() == 1;
  };
  std::vector<ir::Value*> results;
  Ints places(static_cast<size_t>(rank - 1), rank), all;
  for (int64_t i = 0; i < rank - 1; ++i) {
    if (is_too_short(i)) continue;
    places[static_cast<size_t>(i)] = static_cast<int64_t>(all.size());
    all.push_back(places[static_cast<size_t>(i)]);
    results.push_back(transformed_along(c, x, i, points, how));
  }
  if (c.failed() || results.empty()) return c.unsupported("no axis of its input can be transformed so");
  ir::Value* at = c.reshape(c.cast(c.input(2), DType::i64), Ints{});
  at = c.select(c.binary(ElementwiseOp::less, at, 0.0), c.plus(at, c.integer_scalar(rank)), at);
  at = c.gather(c.ints(all), c.gather(c.ints(places), at, 0), 0);
  ir::Value* y = results[0];
  for (size_t i = 1; i < results.size(); ++i)
    y = choose_value(c, c.binary(ElementwiseOp::equal, at, static_cast<double>(i)), results[i], y);
  c.set_output(0, y);
}

// Triangles over the bins of a transform, whose corners are equally far apart in mels.
void import_mel_weight_matrix(NodeContext& c) {
  using Op = ElementwiseOp;
  const auto type = static_cast<ElementType>(c.integer("output_datatype", 1));
  const auto number = [&](size_t input, DType dtype) { return c.reshape(c.cast(c.require(input), dtype), Ints{}); };
  ir::Value *bands = number(0, DType::i64), *points = number(1, DType::i64), *sampling = number(2, DType::f64);
  const auto mels = [&](size_t input) {
    ir::Value* ratio = c.binary(Op::add, c.binary(Op::div, number(input, DType::f64), 700.0), 1.0);
    return c.binary(Op::mul, c.unary(UnaryOp::log, ratio), 2595 / std::numbers::ln10);
  };
  if (!to_dtype(type)) return c.unsupported("its type {} is not supported", name_of(type));
  const auto count = [&](ir::Value* end) { return count_up(c, c.reshape(end, {1})); };
  ir::Value *low = mels(3), *corners = c.binary(Op::add, bands, 2.0);
  ir::Value* step = c.divide(c.minus(mels(4), low), c.cast(corners, DType::f64));
  ir::Value* at = c.plus(c.mul(c.cast(count(corners), DType::f64), step), low);
  at = c.binary(Op::mul,
                c.binary(Op::sub, c.unary(UnaryOp::exp, c.binary(Op::mul, at, std::numbers::ln10 / 2595)), 1.0), 700.0);
  at = c.divide(c.mul(c.cast(c.binary(Op::add, points, 1.0), DType::f64), at), sampling);
  at = c.unary(UnaryOp::floor, at);  // bins at the corners
  const auto corner = [&](int64_t first) { return c.gather(at, c.plus(count(bands), c.integer_scalar(first)), 0); };
  ir::Value *left = corner(0), *middle = corner(1), *right = corner(2);
  ir::Value* bins = c.binary(Op::add, c.divide(points, c.integer_scalar(2)), 1.0);
  ir::Value* bin = c.unsqueeze(c.cast(count(bins), DType::f64), {1});
  ir::Value* zero = c.scalar(0, DType::f64);
  ir::Value* rising =
      c.select(c.binary(Op::less, bin, left), zero, c.divide(c.minus(bin, left), c.minus(middle, left)));
  ir::Value* falling =
      c.select(c.binary(Op::less, bin, right), c.divide(c.minus(right, bin), c.minus(right, middle)), zero);
  ir::Value* y = c.select(c.binary(Op::less, bin, middle), rising,
                          c.select(c.binary(Op::equal, bin, middle), c.scalar(1, DType::f64), falling));
  c.set_output(0, c.cast(y, *to_dtype(type)));
}

void import_stft(NodeContext& c) {
  ir::Value *x = c.require(0), *step = listed(c, 1), *window = c.input(2);
  FourierTransform how;
  how.onesided = c.flag("onesided", true);
  how.parts = parts_of(c, x);
  if (c.failed()) return;
  if (x->rank() != 3) return c.invalid("the signal has {} dimensions, expected 3", x->rank());
  if (how.onesided && how.parts == 2) return c.invalid("one side is of real signals");
  if (!window && !c.has(3)) return c.invalid("it has neither a window nor a frame_length");
  ir::Value* points = c.has(3) ? listed(c, 3) : c.shape_of(window, 0, 1);
  if (!is_some(c, step, "frame_step") || !is_some(c, points, "the length of frames")) return;
  ir::Value* room = c.minus(c.shape_of(x, 1, 2), points);
  if (c.constant_scalar(room).value_or(0) < 0)
    return c.invalid("frames of {} elements of a signal of {}", *c.constant_scalar(points), *c.dim(x, 1).as_constant());
  ir::Value* begins = c.mul(count_up(c, c.plus(c.divide(room, step), c.ints({1}))), step);
  ir::Value* places = c.plus(c.unsqueeze(begins, {1}), count_up(c, points));
  ir::Value* frames = c.gather(x, places, 1);  // [batch, frames, points, parts]
  if (window) frames = c.mul(frames, c.reshape(window, Ints{-1, 1}));
  c.set_output(0, fourier_transform(c, frames, points, how));
}

}  // namespace lathe::onnx
