// SPDX-License-Identifier: Apache-2.0
// Quantisation. Integer operators whose zero points are 0 become products of integers, the others arithmetic in f64,
// which is exact too.
#include <algorithm>

#include "onnx/import_window.h"
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

// A scale or zero point laid beside x: one value, or one per slice of the axis. With blocks it has x's rank.
ir::Value* beside(NodeContext& c, ir::Value* value, ir::Value* x, int64_t axis, bool by_blocks) {
  if (c.failed() || by_blocks || value->rank() != 1 || x->rank() == 1) return value;
  if (c.dim(value, 0) == Expr(1)) return c.reshape(value, Ints{});
  Ints axes;
  for (int64_t i = 0; i < x->rank(); ++i)
    if (i != axis) axes.push_back(i);
  return c.unsqueeze(value, axes);
}

// Of the attributes `axis` and `block_size`.
struct Granularity {
  int64_t axis = 0;
  Ints blocks;  // as ops quantize and dequantize have them
};

Granularity granularity(NodeContext& c, const ir::Value* x, const ir::Value* scale) {
  Granularity found;
  const int64_t block = c.integer("block_size", 0), axis = c.integer("axis", 1);
  if (block < 0) c.invalid("block_size is {}; give 1 or more", block);
  const bool by_blocks = block > 0 && scale->rank() > 0 && scale->rank() == x->rank();
  if (block > 0 && scale->rank() > 1 && !by_blocks)
    c.invalid("block_size is {}, but the scale has rank {} and x has rank {}", block, scale->rank(), x->rank());
  if (scale->rank() > 0 && (by_blocks || x->rank() > 1)) found.axis = c.axis(axis, x->rank());
  if (!by_blocks || c.failed()) return found;
  found.blocks.assign(static_cast<size_t>(x->rank()), 1);
  found.blocks[static_cast<size_t>(found.axis)] = block;
  return found;
}

ir::Value* quantize(NodeContext& c, ir::Value* x, ir::Value* scale, ir::Value* zero_point, QuantizeAttrs attributes) {
  std::vector<ir::Value*> operands{x, scale};
  if (zero_point) operands.push_back(zero_point);
  return c.add(attributes, std::move(operands));
}

ir::Value* quantize(NodeContext& c, ir::Value* x, ir::Value* scale, ir::Value* zero_point, DType type) {
  QuantizeAttrs attributes;
  attributes.to = type;
  return quantize(c, x, scale, zero_point, std::move(attributes));
}

// round(x) + zero point, clamped to the type; x holds quotients.
ir::Value* to_levels(NodeContext& c, ir::Value* quotients, ir::Value* zero_point, DType type) {
  return quantize(c, c.cast(quotients, DType::f32), c.scalar(1, DType::f32), zero_point, type);
}

bool is_zero(NodeContext& c, ir::Value* zero_point) {
  if (!zero_point) return true;
  const std::optional<Tensor> known = c.known(zero_point);
  if (!known) return false;
  for (int64_t i = 0; i < known->volume(); ++i)
    if (known->at(i) != 0) return false;
  return true;
}

// Whether the product of two operands can be taken as it is: 8-bit integers and zero points of 0.
bool are_plain(NodeContext& c, ir::Value* a, ir::Value* a_zero, ir::Value* b, ir::Value* b_zero) {
  const auto is_small = [](const ir::Value* value) {
    return value->dtype() == DType::i8 || value->dtype() == DType::u8;
  };
  return is_small(a) && is_small(b) && is_zero(c, a_zero) && is_zero(c, b_zero);
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

// Inputs that hold one value each.
bool is_scalar(NodeContext& c, std::initializer_list<size_t> inputs) {
  return std::all_of(inputs.begin(), inputs.end(), [&](size_t i) {
    const ir::Value* value = c.require(i);
    return value->rank() == 0 || (value->rank() == 1 && c.dim(value, 0) == Expr(1));
  });
}
ir::Value* single(NodeContext& c, ir::Value* value) { return value->rank() == 0 ? value : c.reshape(value, Ints{}); }

// i32 sums, worth `scale` each, in levels of `step`.
ir::Value* requantize(NodeContext& c, ir::Value* sums, ir::Value* scale, ir::Value* step, ir::Value* zero_point) {
  DequantizeAttrs attributes;
  return quantize(c, c.add(attributes, {sums, c.cast(scale, DType::f32)}), c.cast(step, DType::f32), zero_point,
                  zero_point->dtype());
}

// Sums of products of 8-bit integers are exact in f64 whatever the length.
ir::Value* exact(NodeContext& c, ir::Value* integers) { return c.cast(integers, DType::f64); }

}  // namespace

void import_quantize_linear(NodeContext& c) {
  ir::Value *x = c.require(0), *scale = c.require(1), *zero_point = c.input(2);
  Granularity by = granularity(c, x, scale);
  const auto declared = static_cast<ElementType>(c.integer("output_dtype", 0));
  const std::optional<DType> type = zero_point                           ? zero_point->dtype()
                                    : declared == ElementType::undefined ? DType::u8
                                                                         : to_dtype(declared);
  if (!type) return c.unsupported("quantisation to {} is not supported", name_of(declared));
  if (declared != ElementType::undefined && to_dtype(declared) != *type)
    return c.invalid("output_dtype is {}, but the zero point has type {}", name_of(declared),
                     name_of(from_dtype(*type)));
  const auto asked = static_cast<ElementType>(c.integer("precision", 0));
  const std::optional<DType> precision = asked != ElementType::undefined   ? to_dtype(asked)
                                         : is_storage_only(scale->dtype()) ? x->dtype()
                                                                           : scale->dtype();
  if (!precision) return c.unsupported("precision {} is not supported", name_of(asked));
  const bool by_blocks = !by.blocks.empty();
  ir::Value* divisor = c.cast(beside(c, scale, x, by.axis, by_blocks), *precision);
  ir::Value* levels = zero_point ? beside(c, zero_point, x, by.axis, by_blocks) : nullptr;
  QuantizeAttrs attributes;
  attributes.to = *type;
  attributes.blocks = std::move(by.blocks);
  const bool saturate = c.integer("saturate", 1) != 0;
  if (is_storage_only(*type)) attributes.saturate = saturate;
  c.set_output(0, quantize(c, c.cast(x, *precision), divisor, levels, std::move(attributes)));
}

void import_dequantize_linear(NodeContext& c) {
  ir::Value *x = c.require(0), *scale = c.require(1);
  Granularity by = granularity(c, x, scale);
  const auto declared = static_cast<ElementType>(c.integer("output_dtype", 0));
  const std::optional<DType> type = declared == ElementType::undefined
                                        ? is_storage_only(scale->dtype()) ? DType::f32 : scale->dtype()
                                        : to_dtype(declared);
  if (!type) return c.unsupported("its output type {} is not supported", name_of(declared));
  const bool by_blocks = !by.blocks.empty();
  DequantizeAttrs attributes;
  attributes.to = *type;
  attributes.blocks = std::move(by.blocks);
  std::vector<ir::Value*> operands{x, beside(c, scale, x, by.axis, by_blocks)};
  if (c.has(2)) operands.push_back(beside(c, c.input(2), x, by.axis, by_blocks));
  c.set_output(0, c.add(attributes, std::move(operands)));
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
  c.set_output(0, quantize(c, x, scale, zero_point, DType::u8));
  c.set_output(1, scale);
  c.set_output(2, zero_point);
}

void import_matmul_integer(NodeContext& c) {
  ir::Value *a = c.require(0), *b = c.require(1);
  if (are_plain(c, a, c.input(2), b, c.input(3))) return c.set_output(0, c.matmul(a, b));
  ir::Value* left = centred(c, a, along(c, c.input(2), std::max(a->rank() - 2, 0), a->rank()));
  ir::Value* right = centred(c, b, along(c, c.input(3), std::max(b->rank() - 1, 0), b->rank()));
  c.set_output(0, c.cast(c.matmul(exact(c, left), exact(c, right)), DType::i32));
}

void import_qlinear_matmul(NodeContext& c) {
  ir::Value *a = c.require(0), *b = c.require(3), *zero_point = c.require(7);
  const int64_t rows = std::max(a->rank() - 2, 0), columns = std::max(b->rank() - 1, 0);
  if (are_plain(c, a, c.require(2), b, c.require(5)) && is_scalar(c, {1, 6, 7})) {
    ir::Value* scale = c.mul(single(c, c.require(1)), along(c, c.require(4), columns, b->rank()));
    return c.set_output(0, requantize(c, c.matmul(a, b), scale, single(c, c.require(6)), single(c, zero_point)));
  }
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
  if (are_plain(c, x, c.input(2), w, c.input(3))) return c.set_output(0, c.add(attributes, {x, w}));
  ir::Value* left = centred(c, x, along(c, c.input(2), 1, x->rank()));
  ir::Value* right = centred(c, w, along(c, c.input(3), 0, w->rank()));
  c.set_output(0, c.cast(c.add(attributes, {exact(c, left), exact(c, right)}), DType::i32));
}

void import_qlinear_conv(NodeContext& c) {
  ir::Value *x = c.require(0), *w = c.require(3), *zero_point = c.require(7);
  const ConvolutionAttrs attributes = convolution(c, x);
  if (are_plain(c, x, c.require(2), w, c.require(5)) && is_scalar(c, {1, 6, 7})) {
    std::vector<ir::Value*> operands{x, w};
    if (c.has(8)) operands.push_back(c.input(8));
    ir::Value* scale = c.mul(single(c, c.require(1)), along(c, c.require(4), 1, x->rank()));
    ir::Value* sums = c.add(attributes, std::move(operands));
    return c.set_output(0, requantize(c, sums, scale, single(c, c.require(6)), single(c, zero_point)));
  }
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
