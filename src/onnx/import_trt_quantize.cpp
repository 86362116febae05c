// SPDX-License-Identifier: Apache-2.0
// Quantisation as ModelOpt writes it for types that ONNX's operators of the time did not have: operators of domain
// "trt". Scales of MX blocks come as bytes, which are the bits of f8e8m0.
#include "compose/dynamic_quantize.h"
#include "onnx/element_type.h"
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

constexpr int64_t kMxBlock = 32, kNvBlock = 16;

// Blocks along one axis, whole ones of a known dimension.
Ints blocks_along_axis(NodeContext& c, const ir::Value* x, int64_t block_size) {
  const int64_t axis = c.axis(c.integer("axis", -1), x->rank()), block = c.integer("block_size", block_size);
  if (c.failed()) return {};
  const std::optional<int64_t> extent = x->shape()[static_cast<size_t>(axis)].as_constant();
  if (block < 1 || !extent || *extent % block != 0) {
    c.unsupported("blocks of {} along axis {} of {}: the dimension is known, and a multiple of the block", block, axis,
                  to_string(x->shape()));
    return {};
  }
  Ints blocks(static_cast<size_t>(x->rank()), 1);
  blocks[static_cast<size_t>(axis)] = block;
  return blocks;
}

// An attribute that names an element type; others than the one that there is are refused.
void require_type(NodeContext& c, std::string_view attribute, DType wanted) {
  const auto declared = static_cast<ElementType>(c.integer(attribute, 0));
  if (declared == ElementType::undefined || to_dtype(declared) == wanted) return;
  c.unsupported("{} is {}; {} is supported", attribute, name_of(declared), name_of(wanted));
}

void quantize_dynamically(NodeContext& c, DType to, DType scale_type, ir::Value* second_scale, int64_t block_size) {
  ir::Value* x = c.require(0);
  const Ints blocks = blocks_along_axis(c, x, block_size);
  if (c.failed()) return;
  const DynamicallyQuantized made = dynamic_quantize(c, x, second_scale, {to, scale_type, blocks});
  c.set_output(0, made.levels);
  c.set_output(1, made.scales);
}

}  // namespace

void import_quantize_to_float8(NodeContext& c) {
  require_type(c, "output_dtype", DType::f8e4m3fn);
  ir::Value *x = c.require(0), *scale = c.require(1);
  if (c.failed()) return;
  QuantizeAttrs attributes;
  attributes.to = DType::f8e4m3fn;
  c.set_output(0, c.add(attributes, {x, c.cast(scale, x->dtype())}));
}

void import_mx_dynamic_quantize(NodeContext& c) {
  require_type(c, "output_dtype", DType::f8e4m3fn);
  quantize_dynamically(c, DType::f8e4m3fn, DType::f8e8m0, nullptr, kMxBlock);
}

void import_nv_dynamic_quantize(NodeContext& c) {
  require_type(c, "scale_type", DType::f8e4m3fn);
  quantize_dynamically(c, DType::f4e2m1, DType::f8e4m3fn, c.require(1), kNvBlock);
}

void import_mx_dequantize(NodeContext& c) {
  ir::Value *x = c.require(0), *scale = c.require(1);
  const Ints blocks = blocks_along_axis(c, x, kMxBlock);
  const auto declared = static_cast<ElementType>(c.integer("output_dtype", static_cast<int64_t>(ElementType::float32)));
  const std::optional<DType> type = to_dtype(declared);
  if (c.failed()) return;
  if (!type || !is_floating(*type)) return c.unsupported("its output type {} is not supported", name_of(declared));
  if (scale->dtype() == DType::u8) {
    BitcastAttrs bits;
    bits.to = DType::f8e8m0;
    scale = c.add(bits, {scale});
  }
  if (!c.failed() && !c.known(scale)) scale = c.cast(scale, DType::f32);  // that kernels compute with
  DequantizeAttrs attributes;
  attributes.to = *type;
  attributes.blocks = blocks;
  c.set_output(0, c.add(attributes, {x, scale}));
}

}  // namespace lathe::onnx
