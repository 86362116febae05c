// SPDX-License-Identifier: Apache-2.0
// Quantisation as arithmetic: exact, and recognisable by the passes that look for integer kernels.
#include <limits>

#include "onnx/import_window.h"
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

// A scale or zero point laid beside x: one value, one per slice of the axis, or one per block of the axis.
ir::Value* beside(NodeContext& c, ir::Value* value, ir::Value* x, int64_t axis, int64_t block) {
  if (c.failed() || value->rank() == 0 || (value->rank() == 1 && x->rank() == 1 && block == 0)) return value;
  if (value->rank() == 1) {
    if (c.dim(value, 0) == Expr(1)) return c.reshape(value, Ints{});
    Ints axes;
    for (int64_t i = 0; i < x->rank(); ++i)
      if (i != axis) axes.push_back(i);
    return c.unsqueeze(value, axes);
  }
  if (block <= 0) return value;  // of x's shape
  // Repeat each entry of the axis, then drop what the last block has too much.
  Ints repeats(static_cast<size_t>(value->rank()) + 1, 1);
  repeats[static_cast<size_t>(axis) + 1] = block;
  ir::Value* wide = c.expand(c.unsqueeze(value, {axis + 1}), c.ints(repeats));
  std::vector<ir::Value*> shape;
  if (axis > 0) shape.push_back(c.shape_of(value, 0, axis));
  shape.push_back(c.ints({-1}));
  if (axis + 1 < value->rank()) shape.push_back(c.shape_of(value, axis + 1));
  ir::Value* flat = c.reshape(wide, shape.size() == 1 ? shape[0] : c.concat(shape, 0));
  return c.add(SliceAttrs{}, {flat, c.ints({0}), c.shape_of(x, axis, axis + 1), c.ints({axis})});
}

struct Bounds {
  double low, high;
};
std::optional<Bounds> bounds_of(DType type) {
  switch (type) {
    case DType::u8:
      return Bounds{0, 255};
    case DType::i8:
      return Bounds{-128, 127};
    case DType::u16:
      return Bounds{0, 65535};
    case DType::i16:
      return Bounds{-32768, 32767};
    default:
      return std::nullopt;
  }
}

// round(x) + zero point, clamped to the type; x holds quotients.
ir::Value* to_levels(NodeContext& c, ir::Value* quotients, ir::Value* zero_point, DType type) {
  const std::optional<Bounds> bounds = bounds_of(type);
  if (!bounds) {
    c.unsupported("quantisation to {} is not supported", name_of(type));
    return quotients;
  }
  ir::Value* levels = c.unary(UnaryOp::round, c.cast(quotients, DType::f32));
  if (zero_point) levels = c.plus(levels, c.cast(zero_point, DType::f32));
  return c.cast(c.activation(ActivationOp::clip, levels, bounds->low, bounds->high), type);
}

// The integers minus their zero point, in 32 bits.
ir::Value* centred(NodeContext& c, ir::Value* x, ir::Value* zero_point) {
  ir::Value* wide = c.cast(x, DType::i32);
  return zero_point ? c.minus(wide, c.cast(zero_point, DType::i32)) : wide;
}

// A vector along `axis` of a value of that rank; scalars stay.
ir::Value* along(NodeContext& c, ir::Value* value, int64_t axis, int64_t rank) {
  if (!value || value->rank() != 1 || c.dim(value, 0) == Expr(1))
    return value && value->rank() == 1 ? c.reshape(value, Ints{}) : value;
  Ints axes;
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis) axes.push_back(i);
  return axes.empty() ? value : c.unsqueeze(value, axes);
}

ConvolutionAttrs convolution(NodeContext& c, const ir::Value* x) {
  const int64_t spatial = std::max(x->rank() - 2, 1);
  WindowAttributes window = read_window(c, spatial);
  c.ignore({"kernel_shape"});
  ConvolutionAttrs attributes;
  attributes.stride = std::move(window.stride);
  attributes.dilation = std::move(window.dilation);
  attributes.pads_begin = std::move(window.pads_begin);
  attributes.pads_end = std::move(window.pads_end);
  attributes.padding_mode = window.mode;
  attributes.groups = c.integer("group", 1);
  return attributes;
}

// Sums of products of 8-bit integers are exact in f64 whatever the length.
ir::Value* exact(NodeContext& c, ir::Value* integers) { return c.cast(integers, DType::f64); }

}  // namespace

void import_quantize_linear(NodeContext& c) {
  c.ignore({"saturate"});
  ir::Value *x = c.require(0), *scale = c.require(1), *zero_point = c.input(2);
  const int64_t block = c.integer("block_size", 0);
  const int64_t axis = scale->rank() == 0 || x->rank() < 2 ? 0 : c.axis(c.integer("axis", 1), x->rank());
  c.ignore({"axis"});
  const auto declared = static_cast<ElementType>(c.integer("output_dtype", 0));
  const std::optional<DType> type = zero_point                           ? zero_point->dtype()
                                    : declared == ElementType::undefined ? DType::u8
                                                                         : to_dtype(declared);
  if (!type) return c.unsupported("quantisation to {} is not supported", name_of(declared));
  const auto asked = static_cast<ElementType>(c.integer("precision", 0));
  const std::optional<DType> precision = asked == ElementType::undefined ? scale->dtype() : to_dtype(asked);
  if (!precision) return c.unsupported("precision {} is not supported", name_of(asked));
  ir::Value* divisor = c.cast(beside(c, scale, x, axis, block), *precision);
  ir::Value* levels = zero_point ? beside(c, zero_point, x, axis, block) : nullptr;
  c.set_output(0, to_levels(c, c.divide(c.cast(x, *precision), divisor), levels, *type));
}

void import_dequantize_linear(NodeContext& c) {
  ir::Value *x = c.require(0), *scale = c.require(1);
  const int64_t block = c.integer("block_size", 0);
  const int64_t axis = scale->rank() == 0 || x->rank() < 2 ? 0 : c.axis(c.integer("axis", 1), x->rank());
  c.ignore({"axis"});
  const auto declared = static_cast<ElementType>(c.integer("output_dtype", 0));
  const std::optional<DType> type = declared == ElementType::undefined ? scale->dtype() : to_dtype(declared);
  if (!type) return c.unsupported("its output type {} is not supported", name_of(declared));
  const DType work = x->dtype() == DType::i32 ? DType::f64 : DType::f32;  // exact for every integer
  ir::Value* centred = c.cast(x, work);
  if (c.has(2)) centred = c.minus(centred, c.cast(beside(c, c.input(2), x, axis, block), work));
  c.set_output(0, c.cast(c.mul(centred, c.cast(beside(c, scale, x, axis, block), work)), *type));
}

// Chooses scale and zero point so that 0 is representable.
void import_dynamic_quantize_linear(NodeContext& c) {
  ir::Value* x = c.require(0);
  Ints axes;
  for (int i = 0; i < x->rank(); ++i) axes.push_back(i);
  ir::Value* high = c.binary(ElementwiseOp::max, c.reduce(ReduceOp::max, x, axes, false), 0.0);
  ir::Value* low = c.binary(ElementwiseOp::min, c.reduce(ReduceOp::min, x, axes, false), 0.0);
  ir::Value* range = c.minus(high, low);
  ir::Value* flat = c.binary(ElementwiseOp::equal, range, 0.0);
  ir::Value* scale = c.binary(ElementwiseOp::div, c.select(flat, c.scalar_like(1, x), range), 255.0);
  ir::Value* zero = c.activation(ActivationOp::clip, c.unary(UnaryOp::neg, c.divide(low, scale)), 0, 255);
  ir::Value* zero_point = c.cast(c.unary(UnaryOp::round, zero), DType::u8);
  c.set_output(0, to_levels(c, c.divide(x, scale), zero_point, DType::u8));
  c.set_output(1, scale);
  c.set_output(2, zero_point);
}

void import_matmul_integer(NodeContext& c) {
  ir::Value *a = c.require(0), *b = c.require(1);
  ir::Value* left = centred(c, a, along(c, c.input(2), std::max(a->rank() - 2, 0), a->rank()));
  ir::Value* right = centred(c, b, along(c, c.input(3), std::max(b->rank() - 1, 0), b->rank()));
  c.set_output(0, c.cast(c.matmul(exact(c, left), exact(c, right)), DType::i32));
}

void import_qlinear_matmul(NodeContext& c) {
  ir::Value *a = c.require(0), *b = c.require(3), *zero_point = c.require(7);
  const int64_t rows = std::max(a->rank() - 2, 0), columns = std::max(b->rank() - 1, 0);
  ir::Value* left = centred(c, a, along(c, c.require(2), rows, a->rank()));
  ir::Value* right = centred(c, b, along(c, c.require(5), columns, b->rank()));
  ir::Value* product = c.matmul(exact(c, left), exact(c, right));
  const auto factor = [&](size_t i, int64_t axis, int64_t rank) {
    return c.cast(along(c, c.require(i), axis, rank), DType::f64);
  };
  ir::Value* scale =
      c.divide(c.mul(factor(1, rows, a->rank()), factor(4, columns, b->rank())), factor(6, rows, a->rank()));
  c.set_output(0, to_levels(c, c.mul(product, scale), along(c, zero_point, rows, a->rank()), zero_point->dtype()));
}

void import_conv_integer(NodeContext& c) {
  ir::Value *x = c.require(0), *w = c.require(1);
  const ConvolutionAttrs attributes = convolution(c, x);
  ir::Value* left = centred(c, x, along(c, c.input(2), 1, x->rank()));
  ir::Value* right = centred(c, w, along(c, c.input(3), 0, w->rank()));
  c.set_output(0, c.cast(c.add(attributes, {exact(c, left), exact(c, right)}), DType::i32));
}

void import_qlinear_conv(NodeContext& c) {
  ir::Value *x = c.require(0), *w = c.require(3), *zero_point = c.require(7);
  const ConvolutionAttrs attributes = convolution(c, x);
  ir::Value* left = centred(c, x, along(c, c.require(2), 1, x->rank()));
  ir::Value* right = centred(c, w, along(c, c.require(5), 0, w->rank()));
  std::vector<ir::Value*> operands{exact(c, left), exact(c, right)};
  if (c.has(8)) operands.push_back(exact(c, c.input(8)));
  ir::Value* sums = c.add(attributes, operands);
  const auto factor = [&](size_t i) { return c.cast(along(c, c.require(i), 1, x->rank()), DType::f64); };
  ir::Value* scale = c.divide(c.mul(factor(1), factor(4)), factor(6));
  c.set_output(0, to_levels(c, c.mul(sums, scale), along(c, zero_point, 1, x->rank()), zero_point->dtype()));
}

}  // namespace lathe::onnx
