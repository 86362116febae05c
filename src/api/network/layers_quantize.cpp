// SPDX-License-Identifier: Apache-2.0
#include "api/network/layers_quantize.h"

#include "api/network/network_add.h"

namespace lathe::api {
namespace {

bool holds_one(const ir::Value* value) { return volume(value->shape()) == Expr(1); }

bool is_vector_beside(const ir::Value* operand, const ir::Value* x) {
  return operand->rank() == 1 && x->rank() > 1 && !holds_one(operand);
}

}  // namespace

Result<> ScaledLayer::set_block_shape(const nv::Dims& shape) {
  LATHE_TRY(check_dims(shape));
  for (int32_t d = 0; d < shape.nbDims; ++d)
    if (shape.d[d] < 1 && shape.d[d] != -1)
      return fail(ErrorCode::invalid_argument, "block shape has extent {}; give 1 or more, or -1 for the whole extent",
                  shape.d[d]);
  block_ = shape;
  return {};
}

// As ops quantize and dequantize have them; empty where the scale is none by blocks.
Result<Ints> ScaledLayer::blocks(const ir::Value* x, const ir::Value* scale) const {
  if (axis_ < -1 || axis_ >= std::max(x->rank(), 1))
    return fail(ErrorCode::invalid_argument, "axis {} is not in [0, {})", axis_, x->rank());
  Ints blocks;
  const bool beside = scale->rank() == x->rank();
  if (block_.nbDims >= 0 && (!beside || block_.nbDims != x->rank()))
    return fail(ErrorCode::invalid_argument,
                "a block shape of {} dimensions needs x and scale of as many, not {} and {}", block_.nbDims, x->rank(),
                scale->rank());
  if (!beside) return blocks;
  for (size_t d = 0; d < x->shape().size(); ++d) {
    const Expr &have = scale->shape()[d], &want = x->shape()[d];
    const bool all = have == Expr(1);
    const int64_t asked = block_.nbDims < 0 ? -1 : block_.d[d];
    if (have == want && (asked == -1 || asked == 1)) {
      blocks.push_back(1);
      continue;
    }
    if (all && asked == -1) {
      blocks.push_back(0);
      continue;
    }
    if (!have.is_constant() || !want.is_constant())
      return fail(ErrorCode::invalid_argument, "a scale for each block needs dimensions that are known while building");
    const int64_t count = *have.as_constant(), extent = *want.as_constant(), block = count == 0 ? 0 : extent / count;
    if (count * block != extent || (asked != -1 && asked != block))
      return fail(ErrorCode::shape_mismatch, "{} blocks of {} elements do not make up dimension {} of x, which has {}",
                  count, asked == -1 ? block : asked, d, extent);
    blocks.push_back(block);
  }
  if (holds_one(scale) || scale->shape() == x->shape()) blocks.clear();
  return blocks;
}

Result<ir::Value*> ScaledLayer::beside(LayerLowering& lowering, ir::Value* operand, const ir::Value* x,
                                       const char* what) const {
  if (operand->rank() == 0) return operand;
  if (holds_one(operand) && operand->rank() <= 1) return lowering.reshape(operand, Ints{});
  if (is_vector_beside(operand, x)) {
    if (axis_ == -1)
      return fail(ErrorCode::invalid_argument, "the {} has {} values; setAxis() must say along which of {} dimensions",
                  what, operand->shape()[0].to_string(), x->rank());
    Ints dims(static_cast<size_t>(x->rank() - axis_), 1);
    dims[0] = -1;
    return lowering.reshape(operand, dims);
  }
  if (operand->rank() != x->rank())
    return fail(ErrorCode::shape_mismatch, "the {} has rank {}; give a scalar, a vector, or rank {} as x has", what,
                operand->rank(), x->rank());
  return operand;
}

bool QuantizeLayer::setBlockShape(const nv::Dims& blockShape) noexcept {
  return guarded(entry(), "IQuantizeLayer::setBlockShape", [&]() -> Result<> {
    LATHE_TRY(set_block_shape(blockShape));
    touch();
    return {};
  });
}

bool DequantizeLayer::setBlockShape(const nv::Dims& blockShape) noexcept {
  return guarded(entry(), "IDequantizeLayer::setBlockShape", [&]() -> Result<> {
    LATHE_TRY(set_block_shape(blockShape));
    touch();
    return {};
  });
}

// The quotient is rounded to the wider of the types of x and scale.
Result<std::vector<ir::Value*>> QuantizeLayer::lower(LayerLowering& lowering) {
  QuantizeAttrs attributes;
  LATHE_ASSIGN(attributes.to, to_dtype(to_));
  ir::Value *x = in(0), *scale = in(1);
  LATHE_ASSIGN(attributes.blocks, blocks(x, scale));
  if (is_floating(x->dtype()) && is_floating(scale->dtype())) {
    const DType type = size_of(scale->dtype()) > size_of(x->dtype()) ? scale->dtype() : x->dtype();
    x = lowering.cast(x, type);
    scale = lowering.cast(scale, type);
  }
  LATHE_ASSIGN(scale, beside(lowering, scale, x, "scale"));
  std::vector<ir::Value*> operands = {x, scale};
  if (has(2)) {
    LATHE_ASSIGN(operands.emplace_back(), beside(lowering, in(2), x, "zero point"));
  }
  return std::vector{lowering.add(attributes, std::move(operands))};
}

Result<std::vector<ir::Value*>> DequantizeLayer::lower(LayerLowering& lowering) {
  if (is_floating(in(0)->dtype()))
    return fail(ErrorCode::type_mismatch, "it dequantises integers and floats of 8 and 4 bits, but '{}' is {}",
                in(0)->name(), name_of(in(0)->dtype()));
  DequantizeAttrs attributes;
  LATHE_ASSIGN(attributes.to, to_dtype(to_));
  LATHE_ASSIGN(attributes.blocks, blocks(in(0), in(1)));
  LATHE_ASSIGN(ir::Value * scale, beside(lowering, in(1), in(0), "scale"));
  std::vector<ir::Value*> operands = {in(0), scale};
  if (has(2)) {
    LATHE_ASSIGN(operands.emplace_back(), beside(lowering, in(2), in(0), "zero point"));
  }
  return std::vector{lowering.add(attributes, std::move(operands))};
}

nv::IQuantizeLayer* NetworkDefinition::addQuantizeV2(nv::ITensor& input, nv::ITensor& scale,
                                                     nv::DataType outputType) noexcept {
  return add<QuantizeLayer>("INetworkDefinition::addQuantize", {&input, &scale}, outputType);
}

nv::IDequantizeLayer* NetworkDefinition::addDequantizeV2(nv::ITensor& input, nv::ITensor& scale,
                                                         nv::DataType outputType) noexcept {
  return add<DequantizeLayer>("INetworkDefinition::addDequantize", {&input, &scale}, outputType);
}

}  // namespace lathe::api
