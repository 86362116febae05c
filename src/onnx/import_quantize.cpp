// SPDX-License-Identifier: Apache-2.0
// Quantisation. Integer operators become products of the integers as they are, and what their zero points take from the
// sums; with operands that such products do not take, arithmetic in f64, which is exact too.
#include <algorithm>
#include <functional>
#include <utility>

#include "onnx/import_window.h"
#include "onnx/importer.h"
#include "onnx/levels.h"
#include "ops/centred_bytes.h"

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

// The zero point, if there is one: of the scale's shape, as ONNX has it; one element goes with one in any rank.
ir::Value* zero_point_of(NodeContext& c, ir::Value* scale) {
  ir::Value* zero_point = c.input(2);
  if (c.failed() || !zero_point) return zero_point;
  if (zero_point->rank() != scale->rank()) return c.reshape(zero_point, c.shape_of(scale), true);
  return c.require_shape("the zero point", zero_point, c.shape_of(scale));
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

// The integers minus their zero point, in 32 bits.
ir::Value* centred(NodeContext& c, ir::Value* x, ir::Value* zero_point) {
  ir::Value* wide = c.cast(x, DType::i32);
  return zero_point ? c.minus(wide, c.cast(zero_point, DType::i32)) : wide;
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

// A network's layer, whose weights and scales are constants, is what it is with Q/DQ around a layer of floats: passes
// bring that to the integer kernels of the target. Others are exact whatever the target.
bool is_layer(NodeContext& c, size_t x, std::initializer_list<size_t> constants) {
  return !c.known(c.require(x)) &&
         std::all_of(constants.begin(), constants.end(), [&](size_t i) { return c.known(c.require(i)).has_value(); });
}

// Sums of products of 8-bit integers are exact in f64 whatever the length.
ir::Value* exact(NodeContext& c, ir::Value* integers) { return c.cast(integers, DType::f64); }

// Sums of (a - p) * (b - q) over K products each are sum(ab) - p * sum(b) - q * (sum(a) - p * K).
struct LevelSums {
  ir::Value* sums = nullptr;     // i32, or f64 where no integer product takes the operands
  ir::Value* columns = nullptr;  // i32, still to be subtracted: p * sum(b); null = nothing
};
struct LevelProduct {
  ir::Value *products, *p, *q;  // zero points as they lie beside the products; null = 0
  std::function<ir::Value*()> sum_b, sum_a, count;
};

bool are_bytes(const ir::Value* a, const ir::Value* b) {
  return is_byte_integer(a->dtype()) && is_byte_integer(b->dtype());
}

LevelSums without_zero_points(NodeContext& c, const LevelProduct& product) {
  LevelSums result{product.products};
  const auto wide = [&](ir::Value* value) { return c.cast(value, DType::i32); };
  if (product.p) result.columns = c.mul(wide(product.p), product.sum_b());
  if (!product.q) return result;
  ir::Value* rows = product.sum_a();
  if (product.p) rows = c.minus(rows, c.mul(wide(product.p), wide(product.count())));
  result.sums = c.minus(result.sums, c.mul(rows, wide(product.q)));
  return result;
}

// Ones, with which products are sums; of the shape that these lists make together.
ir::Value* ones(NodeContext& c, std::vector<ir::Value*> shape) {
  return c.fill(c.concat(std::move(shape), 0), Tensor::of<int8_t>({1}, {1}));
}

// Constants about their zero point, where these are i8.
void recentre(NodeContext& c, ir::Value*& levels, ir::Value*& zero_point, int64_t axis) {
  if (!zero_point || c.failed() || !is_byte_integer(levels->dtype())) return;
  const std::optional<Tensor> known = c.known(levels), zero = c.known(along(c, zero_point, axis, levels->rank()));
  if (!known || !zero) return;
  Result<std::optional<Tensor>> centred = centred_bytes(*known, *zero);
  if (!centred) return c.set_error(std::move(centred).error());
  if (!*centred) return;
  levels = c.constant(**std::move(centred));
  zero_point = nullptr;
}

LevelSums matmul_of_levels(NodeContext& c, ir::Value* a, ir::Value* p, ir::Value* b, ir::Value* q) {
  recentre(c, b, q, std::max(b->rank() - 1, 0));
  p = is_zero(c, p) ? nullptr : along(c, p, std::max(a->rank() - 2, 0), a->rank());
  q = is_zero(c, q) ? nullptr : along(c, q, std::max(b->rank() - 1, 0), b->rank());
  if (!are_bytes(a, b) || ((p || q) && (a->rank() < 2 || b->rank() < 2)))
    return {c.matmul(exact(c, centred(c, a, p)), exact(c, centred(c, b, q)))};
  const auto depth = [&] { return c.shape_of(a, a->rank() - 1); };
  return without_zero_points(c, {c.matmul(a, b), p, q,
                                 [&] {
                                   return c.matmul(ones(c, {c.ints({1}), depth()}), b);
                                 },
                                 [&] {
                                   return c.matmul(a, ones(c, {depth(), c.ints({1})}));
                                 },
                                 depth});
}

// The images with what they have beyond their ends: levels that stand for 0. Takes the pads from the attributes.
ir::Value* padded(NodeContext& c, ir::Value* x, ir::Value* zero_point, ConvolutionAttrs& attributes) {
  Ints pads = std::exchange(attributes.pads_begin, Ints(attributes.pads_begin.size(), 0)), axes;
  pads.insert(pads.end(), attributes.pads_end.begin(), attributes.pads_end.end());
  attributes.pads_end = attributes.pads_begin;
  if (std::all_of(pads.begin(), pads.end(), [](int64_t pad) { return pad == 0; })) return x;
  for (int axis = 2; axis < x->rank(); ++axis) axes.push_back(axis);
  return c.add(PadAttrs{}, {x, c.ints(pads), zero_point, c.ints(axes)});
}

LevelSums convolution_of_levels(NodeContext& c, ConvolutionAttrs attributes, ir::Value* x, ir::Value* p, ir::Value* w,
                                ir::Value* q, ir::Value* bias) {
  recentre(c, w, q, 0);
  p = is_zero(c, p) ? nullptr : along(c, p, 1, x->rank());
  q = is_zero(c, q) ? nullptr : q;
  const bool is_padded_alike = !p || (p->rank() == 0 && attributes.padding_mode == PaddingMode::explicit_round_down);
  if (!are_bytes(x, w) || !is_padded_alike) {
    std::vector<ir::Value*> operands{exact(c, centred(c, x, p)), exact(c, centred(c, w, along(c, q, 0, w->rank())))};
    if (bias) operands.push_back(exact(c, bias));
    return {c.add(attributes, std::move(operands))};
  }
  if (p) x = padded(c, x, p, attributes);
  Ints axes;
  for (int axis = 1; axis < w->rank(); ++axis) axes.push_back(axis);
  const auto sum_of_weights = [&] {
    ir::Value* sums = c.reduce(ReduceOp::sum, c.cast(w, DType::i32), axes, false);
    return c.unsqueeze(sums, Ints(axes.begin(), axes.end() - 1));
  };
  // One sum serves all columns, unless they are of groups.
  const auto sum_of_images = [&] {
    ir::Value* columns = attributes.groups == 1 ? c.ints({1}) : c.shape_of(w, 0, 1);
    return c.add(attributes, {x, ones(c, {columns, c.shape_of(w, 1)})});
  };
  const auto count = [&] { return c.reduce(ReduceOp::prod, c.shape_of(w, 1), {0}, false); };
  std::vector<ir::Value*> operands{x, w};
  if (bias) operands.push_back(bias);
  return without_zero_points(c, {c.add(attributes, std::move(operands)), p, q ? along(c, q, 1, x->rank()) : nullptr,
                                 sum_of_weights, sum_of_images, count});
}

ir::Value* subtracted(NodeContext& c, const LevelSums& sums) {
  return sums.columns ? c.minus(sums.sums, sums.columns) : sums.sums;
}

// i32 sums, worth `scale` each, in levels of `step`.
ir::Value* requantize(NodeContext& c, const LevelSums& sums, ir::Value* scale, ir::Value* step, ir::Value* zero_point) {
  std::vector<ir::Value*> operands{sums.sums, c.cast(scale, DType::f32)};
  if (sums.columns) operands.push_back(sums.columns);
  return quantize(c, c.add(DequantizeAttrs{}, std::move(operands)), c.cast(step, DType::f32), zero_point,
                  zero_point->dtype());
}

// A tensor in levels; no zero point = 0.
struct Levels {
  ir::Value *levels, *scale, *zero_point;
};

// Chooses scale and zero point so that 0 is representable.
Levels quantized_by_range(NodeContext& c, ir::Value* x) {
  Ints axes;
  for (int i = 0; i < x->rank(); ++i) axes.push_back(i);
  ir::Value* high = c.binary(ElementwiseOp::max, c.reduce(ReduceOp::max, x, axes, false), 0.0);
  ir::Value* low = c.binary(ElementwiseOp::min, c.reduce(ReduceOp::min, x, axes, false), 0.0);
  ir::Value* range = c.minus(high, low);
  ir::Value* flat = c.binary(ElementwiseOp::equal, range, 0.0);
  ir::Value* scale = c.binary(ElementwiseOp::div, c.select(flat, c.scalar_like(1, x), range), 255.0);
  ir::Value* zero = c.activation(ActivationOp::clip, c.unary(UnaryOp::neg, c.divide(low, scale)), 0, 255);
  ir::Value* zero_point = c.cast(c.unary(UnaryOp::round, zero), DType::u8);
  return {quantize(c, x, scale, zero_point, DType::u8), scale, zero_point};
}

// In f32, where a has one scale and zero point, and b one or those of its columns.
ir::Value* scaled_product(NodeContext& c, const Levels& a, const Levels& b, ir::Value* bias) {
  const LevelSums sums = matmul_of_levels(c, a.levels, a.zero_point, b.levels, b.zero_point);
  ir::Value* scale = c.mul(single(c, a.scale), along(c, b.scale, std::max(b.levels->rank() - 1, 0), b.levels->rank()));
  ir::Value* product = c.mul(c.cast(subtracted(c, sums), DType::f32), scale);
  return bias ? c.plus(product, bias) : product;
}

}  // namespace

void import_quantize_linear(NodeContext& c) {
  ir::Value *x = c.require(0), *scale = c.require(1), *zero_point = zero_point_of(c, scale);
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
  if (is_floating(x->dtype()))
    return c.invalid("x has type {}; it dequantises integers and floats of 8 and 4 bits", name_of(x->dtype()));
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
  if (ir::Value* zero_point = zero_point_of(c, scale)) operands.push_back(beside(c, zero_point, x, by.axis, by_blocks));
  c.set_output(0, c.add(attributes, std::move(operands)));
}

void import_dynamic_quantize_linear(NodeContext& c) {
  const Levels quantized = quantized_by_range(c, c.require(0));
  c.set_outputs({quantized.levels, quantized.scale, quantized.zero_point});
}

void import_matmul_integer(NodeContext& c) {
  const LevelSums sums = matmul_of_levels(c, c.require(0), c.input(2), c.require(1), c.input(3));
  c.set_output(0, c.cast(subtracted(c, sums), DType::i32));
}

// A float product: (a - p) * (b - q) * scales, plus what is added to each column.
void import_matmul_integer_to_float(NodeContext& c) {
  const Levels a{c.require(0), c.require(2), c.input(4)};
  c.set_output(0, scaled_product(c, a, {c.require(1), c.require(3), c.input(5)}, c.input(6)));
}

void import_dynamic_quantize_matmul(NodeContext& c) {
  const Levels a = quantized_by_range(c, c.require(0));
  c.set_output(0, scaled_product(c, a, {c.require(1), c.require(2), c.input(3)}, c.input(4)));
}

void import_qlinear_matmul(NodeContext& c) {
  ir::Value *a = c.require(0), *b = c.require(3), *zero_point = c.require(7);
  const int64_t rows = std::max(a->rank() - 2, 0), columns = std::max(b->rank() - 1, 0);
  if (is_scalar(c, {1, 2, 6, 7}) && is_layer(c, 0, {1, 2, 3, 4, 5, 6, 7}))
    return set_levels(c, c.matmul(dequantized(c, {0, 1, 2}), dequantized(c, {3, 4, 5}, columns)), 6, 7,
                      zero_point->dtype());
  const LevelSums sums = matmul_of_levels(c, a, c.require(2), b, c.require(5));
  if (sums.sums->dtype() == DType::i32 && is_scalar(c, {1, 6, 7})) {
    ir::Value* scale = c.mul(single(c, c.require(1)), along(c, c.require(4), columns, b->rank()));
    return c.set_output(0, requantize(c, sums, scale, single(c, c.require(6)), single(c, zero_point)));
  }
  const auto factor = [&](size_t i, int64_t axis, int64_t rank) {
    return c.cast(along(c, c.require(i), axis, rank), DType::f64);
  };
  ir::Value* scale =
      c.divide(c.mul(factor(1, rows, a->rank()), factor(4, columns, b->rank())), factor(6, rows, a->rank()));
  ir::Value* quotients = c.mul(exact(c, subtracted(c, sums)), scale);
  c.set_output(0, to_levels(c, quotients, along(c, zero_point, rows, a->rank()), zero_point->dtype()));
}

void import_conv_integer(NodeContext& c) {
  ir::Value *x = c.require(0), *w = c.require(1);
  const LevelSums sums = convolution_of_levels(c, convolution(c, x), x, c.input(2), w, c.input(3), nullptr);
  c.set_output(0, c.cast(subtracted(c, sums), DType::i32));
}

void import_qlinear_conv(NodeContext& c) {
  ir::Value *x = c.require(0), *w = c.require(3), *zero_point = c.require(7);
  const ConvolutionAttrs attributes = convolution(c, x);
  if (is_scalar(c, {1, 2, 6, 7}) && is_layer(c, 0, {1, 2, 3, 4, 5, 6, 7})) {
    std::vector<ir::Value*> operands{dequantized(c, {0, 1, 2}), dequantized(c, {3, 4, 5})};
    if (ir::Value* bias = c.input(8)) {
      ir::Value* scale = c.mul(single(c, c.require(1)), along(c, c.require(4), 0, 1));
      operands.push_back(c.add(DequantizeAttrs{}, {bias, scale}));
    }
    return set_levels(c, c.add(attributes, std::move(operands)), 6, 7, zero_point->dtype());
  }
  const LevelSums sums = convolution_of_levels(c, attributes, x, c.require(2), w, c.require(5), c.input(8));
  if (sums.sums->dtype() == DType::i32 && is_scalar(c, {1, 6, 7})) {
    ir::Value* scale = c.mul(single(c, c.require(1)), along(c, c.require(4), 1, x->rank()));
    return c.set_output(0, requantize(c, sums, scale, single(c, c.require(6)), single(c, zero_point)));
  }
  const auto factor = [&](size_t i) { return c.cast(along(c, c.require(i), 1, x->rank()), DType::f64); };
  ir::Value* scale = c.divide(c.mul(factor(1), factor(4)), factor(6));
  ir::Value* quotients = c.mul(exact(c, subtracted(c, sums)), scale);
  c.set_output(0, to_levels(c, quotients, along(c, zero_point, 1, x->rank()), zero_point->dtype()));
}

}  // namespace lathe::onnx
